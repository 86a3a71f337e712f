# Build: docker build -t aoid .
# Run:   docker run --network host -v ./aoid.conf:/etc/aoid/aoid.conf:ro aoid
# The daemon listens on loopback only, hence the network of the host.
FROM debian:bookworm-slim AS build
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev make pkg-config \
    libuv1-dev libprotobuf-c-dev protobuf-c-compiler libinih-dev liblzma-dev libssl-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN make -j"$(nproc)" install PREFIX=/usr DESTDIR=/out

FROM debian:bookworm-slim
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libuv1 libprotobuf-c1 libinih1 liblzma5 libssl3 \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin aoid
COPY --from=build /out/ /
USER aoid
EXPOSE 2643
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/bin/aoid", "--config", "/etc/aoid/aoid.conf"]
