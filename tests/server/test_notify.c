/* test_notify.c: readiness: systemd's datagrams, and the file with the port. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "server/notify.h"

/* Binds a datagram socket to the name as NOTIFY_SOCKET spells it, notifies, and compares what came. */
static void notified(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(name);
    assert_true(len < sizeof address.sun_path);
    memcpy(address.sun_path, name, len);
    if (name[0] == '@') address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len)), 0);
    setenv("NOTIFY_SOCKET", name, 1);
    notify_systemd("READY=1");
    char got[32] = {0};
    assert_int_equal(recv(fd, got, sizeof got - 1, 0), 7);
    assert_string_equal(got, "READY=1");
    unsetenv("NOTIFY_SOCKET");
    close(fd);
}

static void systemd_hears_at_a_path_and_at_an_abstract_name(void **state)
{
    (void)state;
    char dir[] = "/tmp/aoid-test-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/notify", dir);
    notified(path);
    unlink(path);
    rmdir(dir);
    snprintf(path, sizeof path, "@aoid-test-%d", (int)getpid());
    notified(path);
}

static void without_a_socket_or_with_a_dead_one_nothing_happens(void **state)
{
    (void)state;
    notify_systemd("READY=1");
    setenv("NOTIFY_SOCKET", "@aoid-test-nobody-listens", 1);
    notify_systemd("READY=1"); /* a warning in the log */
    setenv("NOTIFY_SOCKET", "vsock:1:2", 1);
    notify_systemd("READY=1");
    unsetenv("NOTIFY_SOCKET");
}

static void the_watchdog_is_for_the_process_that_it_names(void **state)
{
    (void)state;
    char pid[20];
    assert_int_equal(notify_watchdog_ms(), 0);
    setenv("WATCHDOG_USEC", "30000000", 1);
    assert_int_equal(notify_watchdog_ms(), 30000);
    setenv("WATCHDOG_PID", "1", 1);
    assert_int_equal(notify_watchdog_ms(), 0);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_PID", pid, 1);
    assert_int_equal(notify_watchdog_ms(), 30000);
    setenv("WATCHDOG_USEC", "soon", 1);
    assert_int_equal(notify_watchdog_ms(), 0);
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

static void the_port_file_holds_the_port(void **state)
{
    (void)state;
    char path[] = "/tmp/aoid-test-XXXXXX";
    int fd = mkstemp(path);
    close(fd);
    assert_int_equal(notify_port_file_check(path), 0);
    char temporary[sizeof path + 4];
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    assert_int_equal(access(temporary, F_OK), -1); /* nothing is left of that */
    assert_int_equal(notify_port_file(path, 40123), 0);
    FILE *file = fopen(path, "r");
    char line[32];
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "40123\n");
    fclose(file);
    unlink(path);
    assert_int_equal(notify_port_file("/nonexistent/port", 1), -1);
    assert_int_equal(notify_port_file_check("/nonexistent/port"), -1);
    assert_int_equal(notify_port_file_check("/tmp"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systemd_hears_at_a_path_and_at_an_abstract_name),
        cmocka_unit_test(without_a_socket_or_with_a_dead_one_nothing_happens),
        cmocka_unit_test(the_watchdog_is_for_the_process_that_it_names),
        cmocka_unit_test(the_port_file_holds_the_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
