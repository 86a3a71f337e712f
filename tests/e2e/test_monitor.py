"""test_monitor.py: the pages for whoever watches the daemon: /metrics, /healthz, /readyz, /spaces, /sessions."""
import http.client
import json
import re
import socket
import time

import aoiclient as aoi
from aoiclient import Connection, pb
from bystander import S, fill_up
from harness import Daemon, eventually, main, refused_start, seeded, test


def monitored(**options):
    return Daemon(http_listen="127.0.0.1:0", **options)


def http_port(d):
    eventually(lambda: "event=http " in d.log(), "the pages are served")
    return int(re.search(r"event=http address=127\.0\.0\.1:(\d+)", d.log()).group(1))


def get(port, path, method="GET", body=None):
    """Status, content type, body."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        c.request(method, path, body)
        r = c.getresponse()
        return r.status, r.getheader("content-type"), r.read().decode()
    finally:
        c.close()


def serves(port):
    try:
        return get(port, "/healthz")[0] == 200
    except (http.client.HTTPException, OSError):
        return False


def scrape(port):
    """Series -> value."""
    status, kind, text = get(port, "/metrics")
    assert status == 200 and kind.startswith("text/plain; version=0.0.4"), (status, kind)
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if not line.startswith("#")}


@test
def every_page_is_there_and_nothing_else():
    with monitored() as d:
        port = http_port(d)
        assert get(port, "/healthz")[::2] == (200, "ok\n")
        assert get(port, "/readyz")[::2] == (200, "ready\n")
        assert get(port, "/spaces")[:2] == get(port, "/sessions")[:2] == (200, "application/json")
        for path in ("/", "/metrics/", "/metric", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/favicon.ico", "/x" * 300):
            status = get(port, path)[0]
            assert status == 404, (path, status)
        assert get(port, "/metrics?x=1")[0] == 200


@test
def only_get_and_head_are_answered():
    with monitored() as d:
        port = http_port(d)
        status, _, body = get(port, "/metrics", "HEAD")
        assert (status, body) == (200, "")
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
            try:
                status = get(port, "/metrics", method, "x" * 10)[0]
            except (http.client.HTTPException, ConnectionError):
                status = 0  # turned away without a word
            assert status in (0, 400, 405, 501), (method, status)
        assert get(port, "/metrics", "POST", "x=1")[0] == 405
        assert get(port, "/healthz")[0] == 200


@test
def the_numbers_are_those_of_what_happened():
    with monitored() as d, Connection(d.port) as a, Connection(d.port) as b:
        port = http_port(d)
        a.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 3, 0), aoi.add(3, 900, 0), aoi.subscribe(1, 1), aoi.flush())
        a.ok(S, aoi.move((2, 4, 0)), aoi.flush())
        a.ok(S, aoi.remove(2), aoi.flush())
        b.ok(S + 1, aoi.create_space())
        b.batch(77, aoi.flush())
        b.batch(S, aoi.remove(1))
        m = scrape(port)
        space = lambda name: m['aoid_space_%s{space="%d"}' % (name, S)]
        got = {n: space(n) for n in ("entities", "players", "pairs", "flushes_total", "enters_total", "leaves_total", "updates_total", "moves_total",
                                     "skipped_total", "densest_cell_entities")}
        assert got == dict(entities=2, players=1, pairs=0, flushes_total=3, enters_total=1, leaves_total=1, updates_total=1, moves_total=1,
                           skipped_total=0, densest_cell_entities=1), got
        assert m["aoid_connections"] == m["aoid_sessions"] == m["aoid_spaces"] == 2
        assert m['aoid_errors_total{code="UNKNOWN_SPACE"}'] == 1 and m['aoid_errors_total{code="NOT_OWNER"}'] == 1
        assert m["aoid_frames_received_total"] == 8 and m["aoid_received_bytes_total"] > 100 and m["aoid_sent_bytes_total"] > 100
        assert m["aoid_flush_duration_seconds_count"] == 3 == m["aoid_delta_latency_seconds_count"]
        assert m['aoid_flush_duration_seconds_bucket{le="+Inf"}'] == 3 and 0 < m["aoid_flush_duration_seconds_sum"] < 60
        assert m["aoid_oracle_checked_total"] >= 1 and m["aoid_oracle_mismatches_total"] == 0
        assert m["process_resident_memory_bytes"] > 1e6 and m["process_open_fds"] > 5 and abs(m["process_start_time_seconds"] - time.time()) < 3600
        before = {n: m["aoid_%s_total" % n] for n in ("deltas", "enters", "leaves", "updates", "moves", "messages", "skipped")}
        assert before == dict(deltas=3, enters=1, leaves=1, updates=1, moves=1, messages=0, skipped=0), before
        assert (m["aoid_entities"], m["aoid_players"], m["aoid_pairs"]) == (2, 1, 0)
        a.ok(S, aoi.destroy_space())
        m = scrape(port)
        assert before == {n: m["aoid_%s_total" % n] for n in before}, "what was counted in a space stays counted when it ends"
        assert m["aoid_entities"] == 0 and 'aoid_space_entities{space="%d"}' % S not in m
        b.close()
        eventually(lambda: scrape(port)['aoid_connections_closed_total{reason="eof"}'] == 1, "the close is counted")


def listed(port, what):
    """All pages of /spaces or /sessions."""
    seen, path = [], "/" + what
    while path:
        page = json.loads(get(port, path)[2])
        assert len(page[what]) <= 1000
        seen += page[what]
        path = page["next"]
    return seen


def sessions(port):
    return listed(port, "sessions")


@test
def spaces_are_listed_as_json_in_pages():
    with monitored() as d, Connection(d.port) as c:
        port, n = http_port(d), 1500
        for i in range(n):
            c.write(aoi.encode(batch=pb.Batch(space=i + 1, commands=[aoi.create_space(flush_ms=0), aoi.add(1, 0, 0)])))
        c.ping()
        seen = listed(port, "spaces")
        assert [s["id"] for s in seen] == [str(i + 1) for i in range(n)]
        assert all(s["entities"] == 1 and s["index"] == "grid" for s in seen)
        m = scrape(port)
        assert m["aoid_spaces"] == n and sum(name.startswith("aoid_space_entities{") for name in m) == 1000


@test
def a_wrong_guess_of_how_to_get_the_next_page_is_refused_and_not_answered_with_the_first():
    with monitored() as d, Connection(d.port) as c:
        port = http_port(d)
        for space in (3, 5):
            c.ok(space, aoi.create_space())
        for page in ("/spaces", "/sessions"):
            for arguments in ("page=2", "after", "after=", "after=x", "after=3x", "after=-1", "after=99999999999999999999", "AFTER=3", "after=3&page=2",
                              "page=2&after=3", "a" * 200, "after=" + "1" * 200, "p%22a=1"):
                status, kind, text = get(port, page + "?" + arguments)
                assert status == 400 and kind.startswith("text/plain"), (arguments, status, kind)
                assert "is not understood: %s takes after=NUMBER alone; \"next\" in its JSON is the path of the next page\n" % page in text, text
            assert get(port, page + "?page=2", "HEAD")[0] == 400 and get(port, page + "?after=0")[0] == get(port, page + "?")[0] == 200
        assert get(port, "/spaces?page=2")[2].startswith('"page=2" is not understood: ')
        assert [s["id"] for s in json.loads(get(port, "/spaces?after=3")[2])["spaces"]] == ["5"]
        assert json.loads(get(port, "/spaces?after=18446744073709551615")[2])["spaces"] == []
        assert get(port, "/healthz?cache=no")[0] == get(port, "/metrics?after=x")[0] == 200


@test
def spaces_have_those_settings_that_are_not_at_their_defaults():
    with monitored() as d, Connection(d.port) as c:
        port = http_port(d)
        c.ok(1, aoi.create_space())
        c.ok(2, aoi.create_space(shape=pb.SHAPE_CELLS, cell_size=10, cell_range=2, bounds=pb.Bounds(min_x=-100, min_y=-50.5, max_x=100, max_y=1e6),
                                 extra=True, flush_ms=0, persistent=True, leave_margin=2.5, min_stay_ms=300, max_view=7, max_enter_per_flush=3,
                                 update_tiers="15:1 *:4"))
        c.ok(3, aoi.create_space(dimensions=3, bounds=pb.Bounds(min_x=-1, min_y=-2, min_z=-3, max_x=1, max_y=2, max_z=3.25)))
        plain, full, deep = listed(port, "spaces")
        names = {"cell_range": 2, "bounds": "-100,-50.5,100,1000000", "extra": True, "persistent": True, "leave_margin": 2.5, "min_stay_ms": 300,
                 "max_view": 7, "max_enter_per_flush": 3, "update_tiers": "15:1 *:4"}
        assert (plain["shape"], plain["cell_size"], plain["flush_ms"]) == ("box", 100, 50) and not names.keys() & plain.keys(), plain
        assert (full["shape"], full["cell_size"], full["flush_ms"]) == ("cells", 10, 0) and names.items() <= full.items(), full
        assert names.keys() & deep.keys() == {"bounds"} and deep["bounds"] == "-1,-2,-3,1,2,3.25", deep


@test
def sessions_are_listed_connected_or_not_with_whose_they_are_and_what_they_own():
    with monitored(max_lease_ms=60000) as d, Connection(d.port, name='zone "7\\\xe9\n') as a, Connection(d.port, name="gone", lease_ms=60000) as b:
        port = http_port(d)
        a.ok(S, aoi.create_space(flush_ms=0), aoi.add(1, 0, 0, radius=10), aoi.add(2, 3, 0), aoi.remove(2), aoi.add(3, 3, 0), aoi.subscribe(1, 1), aoi.flush())
        b.ok(S, aoi.add(4, 0, 0), aoi.subscribe(2, 4), aoi.subscribe(3, 4), aoi.close_player(3))
        b.ok(S + 1, aoi.create_space(persistent=True), aoi.add(5, 0, 0))
        here, there = sessions(port)
        peer = "127.0.0.1:%d" % a.sock.getsockname()[1]
        assert here["id"] == str(a.welcome.session) and here["client"] == 'zone "7\\???' and here["peer"] == peer, here
        assert here["connected"] and here["role"] == "admin" and here["token"] == "" and here["lease_left_ms"] == 10000, here
        assert (here["last_seq"], here["entities"], here["players"], here["served"], here["skipped"]) == (str(a.seq), 2, 1, 1, 0), here
        assert (here["unsent_bytes"], here["full_ms"]) == (0, 0) and here["silent_ms"] < 60000, here
        assert (there["client"], there["entities"], there["players"]) == ("gone", 2, 1), there
        b.close()
        eventually(lambda: not sessions(port)[1]["connected"], "its connection is gone")
        there = sessions(port)[1]
        assert 0 < there["lease_left_ms"] <= 60000 and (there["peer"], there["role"], there["client"]) == (None, None, "gone"), there
        assert (there["entities"], there["players"]) == (2, 1), there


@test
def sessions_come_in_pages():
    with monitored(max_sessions=3000, max_lease_ms=60000) as d:
        port, n = http_port(d), 1500
        for i in range(n):
            Connection(d.port, name=str(i)).close()
        eventually(lambda: scrape(port)["aoid_connections"] == 0, "their leases run")
        assert sorted(int(s["client"]) for s in sessions(port)) == list(range(n))


@test
def who_reads_too_slowly_is_told_of_in_the_log_and_in_the_page():
    with monitored(out_soft_bytes=1 << 20, out_soft_ms=600000) as d, Connection(d.port) as mover, Connection(d.port, rcvbuf=4096, name="slowpoke") as stalled:
        port = http_port(d)
        fill_up(mover, stalled)
        for step in range(1000):  # faster than the space is flushed by itself
            mover.ok(S, aoi.move((2, 0, 1000 + step)), aoi.flush())
        the_slow = lambda: next(s for s in sessions(port) if s["client"] == "slowpoke")
        slow = the_slow()
        assert slow["skipped"] >= 1000 and slow["unsent_bytes"] > 500000, slow
        eventually(lambda: the_slow()["full_ms"] > 0, "it is told for how long, once a tick has passed")
        assert scrape(port)["aoid_unsent_bytes"] >= 500000
        eventually(lambda: "event=slow" in d.log(), "it is warned of", 60)
        line = next(line for line in d.log().splitlines() if "event=slow" in line)
        assert "level=warn" in line and "session=%d " % stalled.welcome.session in line and 'client="slowpoke"' in line, line
        assert 50 <= int(re.search(r"skipped=(\d+)%", line).group(1)) <= 100 and int(re.search(r"unsent_bytes=(\d+)", line).group(1)) > 500000, line
        stalled.close()
        mover.ok(S, aoi.flush())


@test
def a_page_that_takes_long_is_not_made_anew_for_everyone_who_asks():
    with monitored() as d, Connection(d.port) as c:
        port, n = http_port(d), 50000
        for i in range(n):
            c.write(aoi.encode(batch=pb.Batch(space=i + 1, commands=[aoi.create_space(flush_ms=0)])))
        c.ping()
        bodies = [get(port, "/metrics")[2] for _ in range(20)]
        made = {body.partition("aoid_http_requests_total ")[2].split()[0] for body in bodies}
        assert len(bodies) == 20 and 1 <= len(made) <= 10, made
        time.sleep(1)
        c.ok(n, aoi.add(1, 0, 0))
        eventually(lambda: scrape(port)["aoid_entities"] == 1, "it is made anew, in the end")


@test
def who_made_and_ended_a_space_stands_in_the_log_and_of_many_only_the_first():
    with Daemon() as d, Connection(d.port, name="zone 7") as a, Connection(d.port) as b:
        a.ok(S, aoi.create_space(), aoi.create_space(if_absent=True), aoi.add(1, 0, 0), aoi.add(2, 0, 0), aoi.subscribe(7, 1))
        b.ok(S, aoi.destroy_space())
        a.ok(S + 1, aoi.create_space())
        time.sleep(1.1)
        a.close()
        b.ok(S + 2, aoi.create_space())
        eventually(lambda: "id=%d ended_by" % (S + 1) in d.log(), "its end is told")
        lines = [line.partition("event=space ")[2] for line in d.log().splitlines() if "event=space" in line]
        whose = (a.welcome.session, b.welcome.session)
        assert sorted(lines) == sorted([
            'id=%d made_by=%d client="zone 7" token=' % (S, whose[0]), 'id=%d ended_by=%d client="python" token= entities=2 players=1' % (S, whose[1]),
            'id=%d made_by=%d client="zone 7" token=' % (S + 1, whose[0]),
            'id=%d ended_by=%d why="the session that made it has ended"' % (S + 1, whose[0]),
            'id=%d made_by=%d client="python" token=' % (S + 2, whose[1])]), lines
        for id in range(100, 1100):
            b.write(aoi.encode(batch=pb.Batch(space=id, commands=[aoi.create_space()])))
        b.ping()
        assert 0 < d.log().count("event=space") - len(lines) < 500


@test
def it_is_not_ready_while_it_drains():
    with monitored(drain_timeout_ms=60000, out_soft_bytes=1 << 20) as d, Connection(d.port) as mover, Connection(d.port, rcvbuf=4096) as stalled:
        port = http_port(d)
        fill_up(mover, stalled)
        d.signal()
        mover.wait("draining")
        status, _, text = get(port, "/readyz")
        assert status == 503 and "draining" in text
        assert scrape(port)["aoid_ready"] == 0
        assert get(port, "/healthz")[0] == 200
        stalled.close()
        mover.close()
        d.wait()


def one_too_many(port, idle):
    """Of these connections all but the first 20 are turned away at once; then they are closed."""
    for s in idle[20:]:
        s.settimeout(30)
        assert s.recv(1) == b"", "one too many is turned away at once"
    for s in idle:
        s.close()
    eventually(lambda: serves(port), "there is room again")


@test
def many_silent_or_slow_http_clients_hold_up_nobody():
    with monitored() as d, Connection(d.port) as c:
        port = http_port(d)
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        idle[0].sendall(b"GET /met")
        c.ping()
        one_too_many(port, idle)
        silent = socket.create_connection(("127.0.0.1", port))  # still there when the daemon ends
        silent.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n")
        d.stop()
        silent.close()


@test
def who_asks_nothing_makes_room_for_others_before_they_give_up():
    with monitored() as d:
        port = http_port(d)
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(20)]
        for s in idle[:5]:
            s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")  # and then no more
        began = time.monotonic()
        eventually(lambda: serves(port), "there is room again")
        took = time.monotonic() - began
        assert took < 9, took  # and not the 10 s that an answer may take
        for s in idle:
            s.close()


UPGRADES = (b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA\r\n\r\n",
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: http\r\n\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9), b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300))


def offer(port, data):
    """Sends bytes that are no request, and reads until the end."""
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.settimeout(60)
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while s.recv(65536):
                pass
        except OSError:  # it was turned away meanwhile
            pass


@test
def neither_http2_nor_websockets_nor_noise_change_how_many_clients_there_may_be():
    rng = seeded("noise")
    with monitored() as d:
        port = http_port(d)
        for _ in range(20):
            for data in UPGRADES:
                offer(port, data)
            request = bytearray(b"GET /metrics HTTP/1.1\r\nHost: x\r\nAccept: text/plain\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc")
            for _ in range(rng.randrange(1, 6)):
                request[rng.randrange(len(request))] = rng.randrange(256)
            offer(port, bytes(request))
        assert get(port, "/healthz")[0] == 200
        one_too_many(port, [socket.create_connection(("127.0.0.1", port)) for _ in range(40)])


@test
def requests_on_the_heels_of_others_hold_up_nobody():
    first, head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", b"HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
    with monitored() as d, Connection(d.port) as c:
        port = http_port(d)
        for before in (first, head, b"GET /none HTTP/1.1\r\nHost: x\r\n\r\n", first * 3):
            for then in (b"GET", b"HEAD", b"POST"):
                for length in (b"5", b"0", b"99999999999", b"-1"):
                    for body in (b"", b"hello"):
                        offer(port, before + then + b" /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: " + length + b"\r\n\r\n" + body)
                        c.ping()
        with socket.create_connection(("127.0.0.1", port), timeout=60) as s:
            s.sendall(first + first)
            told = b"".join(iter(lambda: s.recv(65536), b""))
        assert told.count(b"HTTP/1.1 200 OK") == 1 and b"connection: close" in told, told  # the second is for another connection


@test
def garbage_is_no_request():
    with monitored() as d:
        port = http_port(d)
        for bytes_sent in (b"\x00" * 5000, b"GET /metrics\r\n\r\n", b"GET " + b"/x" * 40000 + b" HTTP/1.1\r\n\r\n", b"\xff\xfe\r\n\r\n",
                           b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            offer(port, bytes_sent)
        assert get(port, "/healthz")[0] == 200


@test
def an_address_that_cannot_be_is_refused_in_plain_words_and_none_is_fine():
    with monitored() as d:
        assert "choose another one" in refused_start("--set", "http_listen=127.0.0.1:%d" % http_port(d))
        assert "has no such address" in refused_start("--set", "http_listen=192.0.2.1:0")
    text = refused_start("--set", "http_listen=192.0.2.1:2644")  # an address that nobody has
    assert "http_listen = 192.0.2.1:2644: cannot listen: Cannot assign requested address" in text, text
    with Daemon() as d:
        assert "event=http" not in d.log()


@test
def memory_that_is_full_is_told_once_and_so_is_that_there_is_room_again():
    with monitored(max_memory_bytes="64MiB") as d, Connection(d.port) as c:
        port = http_port(d)
        assert scrape(port)["aoid_memory_full"] == 0 and scrape(port)["aoid_memory_limit_bytes"] == 64 << 20
        c.ok(S, aoi.create_space(flush_ms=0))
        for first in range(1, 40000, 200):
            ack = c.batch(S, *[aoi.add(i, 0, 0, payload=b"x" * 4000) for i in range(first, first + 200)])
            if ack.errors_total:
                break
        for _ in range(5):  # again and again it is refused, and told no more
            c.batch(S, *[aoi.add(i, 0, 0, payload=b"x" * 4000) for i in range(50000, 50200)])
            time.sleep(0.15)
        assert d.log().count("event=memory full=yes max_memory_bytes=67108864") == 1, d.tail()
        series = scrape(port)
        assert 32 << 20 < series["aoid_memory_held_bytes"] < 80 << 20, series["aoid_memory_held_bytes"]
        assert series["aoid_memory_full"] == 1 and series["aoid_memory_denied_total"] >= 200, series
        c.ok(S, aoi.remove(*range(1, first)))
        eventually(lambda: "event=memory full=no" in d.log(), "there is room again", 60)
        eventually(lambda: scrape(port)["aoid_memory_held_bytes"] < 32 << 20, "what was freed is not held any more, whatever pages the process has", 60)
        assert scrape(port)["aoid_memory_full"] == 0 and d.log().count("event=memory") == 2, d.tail()


if __name__ == "__main__":
    main()
