# Build: docker build -t aoid .
# Run:   docker run --network host -v ./aoid.conf:/etc/aoid/aoid.conf:ro aoid
# The daemon listens on loopback only, hence the network of the host. Without Docker: scripts/image.
#
# The image is the Debian package, installed. What building and running need stands in conf/debian/control, and nowhere else.
FROM debian:bookworm-slim AS build
COPY conf/debian /src/debian
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get build-dep -y --no-install-recommends /src
COPY . /src
RUN /src/scripts/package /out

FROM debian:bookworm-slim
COPY --from=build /out/aoid_*.deb /tmp/
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends /tmp/aoid_*.deb \
 && rm -rf /tmp/aoid_*.deb /var/lib/apt/lists/* /var/cache/apt/*
USER aoid
EXPOSE 2643 2644
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s \
    CMD ["/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/2644 && printf 'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && read -r _ status _ <&3 && [ \"$status\" = 200 ]"]
ENTRYPOINT ["/usr/bin/aoid", "--config", "/etc/aoid/aoid.conf"]
