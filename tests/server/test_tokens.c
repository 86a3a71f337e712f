/* test_tokens.c: the file of tokens, who is found by a secret, and what a role may do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "commands.h"
#include "rig.h"
#include "server/tokens.h"

static char err[CONFIG_ERROR_MAX];

/* Loads a file of these bytes and mode. */
static int load_bytes(struct tokens *tokens, const char *bytes, size_t len, mode_t mode)
{
    char path[] = "/tmp/aoid-tokens-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    err[0] = '\0';
    int status = tokens_load(tokens, path, err);
    unlink(path);
    return status;
}

static int load(struct tokens *tokens, const char *text, mode_t mode)
{
    return load_bytes(tokens, text, strlen(text), mode);
}

static void refused(const char *text, const char *why)
{
    struct tokens tokens;
    assert_int_equal(load(&tokens, text, 0600), -1);
    if (strstr(err, why) == NULL) fail_msg("expected \"%s\" in \"%s\"", why, err);
    assert_int_equal(tokens.list.n, 0);
}

static void a_file_gives_names_roles_and_secrets(void **state)
{
    (void)state;
    struct tokens tokens;
    assert_int_equal(
        load(&tokens, "# who may come in\n\n  \t\nzone-7 writer 0123456789abcdef\n\tops\tadmin\tfedcba9876543210 \r\nmap.1 reader aaaaaaaaaaaaaaaa",
             0640),
        0);
    assert_int_equal(tokens.list.n, 3);
    const struct token *zone = tokens_find(&tokens, "0123456789abcdef"), *map = tokens_find(&tokens, "aaaaaaaaaaaaaaaa");
    assert_string_equal(zone->name, "zone-7");
    assert_int_equal(zone->role, ROLE_WRITER);
    assert_int_equal(tokens_find(&tokens, "fedcba9876543210")->role, ROLE_ADMIN);
    assert_string_equal(map->name, "map.1");
    assert_int_equal(map->role, ROLE_READER);
    static const char *const wrong[] = {"", "0", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "zone-7", "fedcba9876543210 "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_null(tokens_find(&tokens, wrong[i]));
    tokens_clear(&tokens);
}

static void a_faulty_file_is_refused_whole_with_its_line(void **state)
{
    (void)state;
    refused("", "nobody could come in");
    refused("# nothing\n\n", "nobody could come in");
    refused("a admin 0123456789abcdef\nb writer\n", ":2: must be NAME ROLE SECRET");
    refused("a admin 0123456789abcdef trailing\n", ":1: must be NAME ROLE SECRET");
    refused("a root 0123456789abcdef\n", "the role must be admin, writer or reader");
    refused("a/b admin 0123456789abcdef\n", "the name must be");
    refused("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa admin 0123456789abcdef\n", "the name must be");
    refused("a admin 0123456789abcdef\nb reader 0123456789abcdef\n", ":2: another line has the same secret");
    refused("a admin 0123456789abcdef\na reader fedcba9876543210\n", ":2: the same name has another role");
    char text[TOKEN_SECRET_MAX + 32];
    snprintf(text, sizeof text, "a admin %0*d\n", TOKEN_SECRET_MAX + 1, 7);
    refused(text, "longer than 1024 bytes");
    refused("a admin 0123456789abcdef\n\n  \n\n#\nx\n", ":6: ");
}

static void a_zero_byte_is_refused_wherever_it_stands(void **state)
{
    (void)state;
    struct tokens tokens;
#define A "a admin 0123456789abcdef"
#define B "b reader fedcba9876543210"
    static const char zeros[4096], begins[] = A "\n\0" B "\n", within[] = A "\n" B "\0\n", behind[] = A "\n" B "\0junk";
    const struct {
        const char *bytes;
        size_t len;
        const char *line;
    } files[] = {
        {zeros, sizeof zeros, ":1: "}, {begins, sizeof begins - 1, ":2: "}, {within, sizeof within - 1, ":2: "}, {behind, sizeof behind - 1, ":2: "}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        assert_int_equal(load_bytes(&tokens, files[i].bytes, files[i].len, 0600), -1);
        assert_non_null(strstr(err, files[i].line));
        assert_non_null(strstr(err, "a zero byte"));
    }
}

static void a_file_that_others_can_read_is_refused(void **state)
{
    (void)state;
    struct tokens tokens;
    static const mode_t modes[] = {0604, 0602, 0666, 0644};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(load(&tokens, "a admin 0123456789abcdef\n", modes[i]), -1);
        assert_non_null(strstr(err, "chmod o-rwx"));
    }
    assert_int_equal(tokens_load(&tokens, "/dev/null", err), -1);
    assert_non_null(strstr(err, "is not a regular file"));
    assert_int_equal(tokens_load(&tokens, "/nowhere/at/all", err), -1);
    assert_non_null(strstr(err, "/nowhere/at/all: No such file"));
}

static void a_token_holds_while_its_name_secret_and_role_stand(void **state)
{
    (void)state;
    struct tokens before, after, none = {0};
    assert_int_equal(load(&before, "a admin 0123456789abcdef\nb writer 1123456789abcdef\nc reader 2123456789abcdef\n", 0600), 0);
    assert_int_equal(load(&after, "a admin 9123456789abcdef\na admin 0123456789abcdef\nb reader 1123456789abcdef\nc reader 3123456789abcdef\n", 0600),
                     0);
    assert_true(tokens_hold(&after, &before.list.at[0]));  /* has a second secret now */
    assert_false(tokens_hold(&after, &before.list.at[1])); /* another role */
    assert_false(tokens_hold(&after, &before.list.at[2])); /* another secret */
    const struct token nobody = {.role = ROLE_ADMIN};
    assert_true(tokens_know(&after, "a") && tokens_know(&after, "") && tokens_know(&none, "zone"));
    assert_false(tokens_know(&after, "zone"));
    assert_true(tokens_hold(&none, &nobody));
    assert_false(tokens_hold(&none, &before.list.at[0]));
    assert_false(tokens_hold(&after, &nobody));
    tokens_clear(&before);
    tokens_clear(&after);
}

static void expect_why(const struct tokens *tokens, const struct token *token, const char *words)
{
    char why[TOKENS_WHY];
    tokens_why(tokens, token, why);
    if (strstr(why, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", why, words);
}

static void what_has_become_of_a_token_is_told(void **state)
{
    (void)state;
    struct tokens before, after, none = {0};
    const struct token nobody = {.role = ROLE_ADMIN};
    assert_int_equal(load(&before, "a admin 0123456789abcdef\nb writer 1123456789abcdef\nc reader 2123456789abcdef\n", 0600), 0);
    assert_int_equal(load(&after, "a admin 9123456789abcdef\nb reader 1123456789abcdef\n", 0600), 0);
    expect_why(&after, &before.list.at[0], "this secret of the token \"a\" was withdrawn");
    expect_why(&after, &before.list.at[1], "the role of the token \"b\" was changed from writer to reader");
    expect_why(&after, &before.list.at[2], "the token \"c\" was withdrawn");
    expect_why(&after, &nobody, "came in without a token");
    expect_why(&none, &before.list.at[0], "no tokens_file any more");
    tokens_clear(&before);
    tokens_clear(&after);
}

/* ------------------------------------------------------------------------------------------------------------- what a role may do */

static void hello_with(struct rig *rig, struct session *session, const char *token)
{
    rig_frame(rig, session,
              &(struct codec_client_frame){.seq = 1, .kind = CODEC_HELLO, .u.hello = {.protocol_version = 1, .client_name = "rig", .token = token}});
}

static int setup_with_tokens(void **state)
{
    if (rig_setup(state) != 0) return -1;
    struct rig *rig = *state;
    return load(&rig->tokens, "ops admin 0123456789abcdef\nzone writer 1123456789abcdef\nmap reader 2123456789abcdef\n", 0600);
}

static void hello_needs_a_token_where_there_are_some(void **state)
{
    struct rig *rig = *state;
    hello_with(rig, &rig->session[0], "");
    rig_expect_error(rig, &rig->session[0], 1, CODEC_UNAUTHENTICATED);
    assert_int_equal(rig->session[0].state, SESSION_CLOSING);
    assert_int_equal(rig->session[0].reason, CLOSE_NO_TOKEN);
    hello_with(rig, &rig->session[1], "0123456789abcdeF");
    assert_int_equal(rig->session[1].state, SESSION_DENIED);
    rig_batch(rig, &rig->session[1], 2, 0, NULL);
    assert_true(rig_silent(rig, &rig->session[1])); /* the answer takes its time, and nothing is listened to meanwhile */
    hello_with(rig, &rig->session[2], "1123456789abcdef");
    assert_int_equal(rig_take(rig, &rig->session[2])->kind, CODEC_WELCOME);
    assert_string_equal(rig->session[2].token.name, "zone");
}

/* Which commands a session of this token is not refused for its role; bit i is the command of kind i. */
static uint32_t allowed(struct rig *rig, struct session *session, const char *token)
{
    uint32_t bits = 0;
    hello_with(rig, session, token);
    assert_int_equal(rig_take(rig, session)->kind, CODEC_WELCOME);
    for (uint32_t kind = 1; kind < CODEC_COMMANDS; kind++) {
        struct codec_create_space create = {.settings = {.dimensions = 7}};
        struct codec_set_space set = {0};
        struct codec_command command = {.kind = kind};
        if (kind == CODEC_CREATE_SPACE) command.u.create_space = &create;
        if (kind == CODEC_SET_SPACE) command.u.set_space = &set;
        if (kind == CODEC_PUBLISH) command.u.publish.kind = CODEC_PUBLISH_ENTITY;
        rig_batch(rig, session, session->last_seq + 1, 1, &command);
        const struct codec_server_frame *frame = rig_take(rig, session);
        assert_int_equal(frame->kind, CODEC_ACK);
        bool by_role = frame->u.ack.error_n > 0 && strstr(frame->u.ack.errors[0].text, "needs a token of a") != NULL;
        if (by_role) assert_int_equal(frame->u.ack.errors[0].code, CODEC_NOT_OWNER);
        if (!by_role) bits |= 1u << kind;
    }
    return bits;
}

static void a_reader_may_do_nothing_but_look(void **state)
{
    struct rig *rig = *state;
    uint32_t all = (1u << CODEC_COMMANDS) - 2;
    uint32_t looking = 1u << CODEC_OPEN_PLAYER | 1u << CODEC_CLOSE_PLAYER | 1u << CODEC_SUBSCRIBE | 1u << CODEC_UNSUBSCRIBE |
                       1u << CODEC_SET_VIEWPORT | 1u << CODEC_CLEAR_VIEWPORT | 1u << CODEC_OVERRIDE | 1u << CODEC_RELEASE;
    assert_int_equal(allowed(rig, &rig->session[0], "0123456789abcdef"), all);
    assert_int_equal(allowed(rig, &rig->session[1], "1123456789abcdef"), all);
    assert_int_equal(allowed(rig, &rig->session[2], "2123456789abcdef"), looking);
}

static void a_space_is_destroyed_by_its_maker_or_an_admin(void **state)
{
    struct rig *rig = *state;
    struct session *ops = &rig->session[0], *zone = &rig->session[1], *other = &rig->session[2];
    hello_with(rig, ops, "0123456789abcdef");
    hello_with(rig, zone, "1123456789abcdef");
    hello_with(rig, other, "1123456789abcdef");
    for (int i = 0; i < 3; i++) assert_int_equal(rig_take(rig, &rig->session[i])->kind, CODEC_WELCOME);
    BATCH(rig, zone, 2, CREATE(0));
    rig_expect_ack(rig, zone, 2, 1);
    BATCH(rig, other, 2, DESTROY);
    rig_expect_refusal(rig, other, CODEC_NOT_OWNER, 1);
    BATCH(rig, ops, 2, DESTROY);
    rig_expect_ack(rig, ops, 2, 1);
}

static void expect_text(struct rig *rig, struct session *session, const char *text)
{
    const struct codec_server_frame *ack = rig_take(rig, session);
    assert_int_equal(ack->kind, CODEC_ACK);
    assert_int_equal(ack->u.ack.error_n, 1);
    assert_int_equal(ack->u.ack.errors[0].code, CODEC_NOT_OWNER);
    assert_string_equal(ack->u.ack.errors[0].text, text);
}

static void who_does_not_own_it_is_told_what_would_help(void **state)
{
    struct rig *rig = *state;
    struct session *zone = &rig->session[1], *other = &rig->session[2];
    hello_with(rig, zone, "1123456789abcdef");
    hello_with(rig, other, "1123456789abcdef");
    for (int i = 1; i < 3; i++) assert_int_equal(rig_take(rig, &rig->session[i])->kind, CODEC_WELCOME);
    zone->token.name[0] = other->token.name[0] = '\0'; /* the same name would give more rights */
    const struct aoi_settings settings = {
        .flush_ms = 0, .dimensions = 2, .index = AOI_INDEX_GRID, .shape = AOI_SHAPE_BOX, .cell_size = 9, .cell_range = 1};
    assert_int_equal(aoi_space_create(rig->world, 0, 1, &settings, false), AOI_OK);
    BATCH(rig, other, 2, SET_SPACE(.has_max_view = true, .max_view = 3));
    expect_text(rig, other, "changing a space of the configuration needs a token of an admin");
    BATCH(rig, other, 3, DESTROY);
    expect_text(rig, other, "a space of the configuration cannot be destroyed");
    BATCH(rig, zone, 2, ADD(1, 0, 0), ADD(2, 0, 0), OPEN_PLAYER(7));
    rig_expect_ack(rig, zone, 2, 3);
    BATCH(rig, other, 4, MOVE(1, 3, 3));
    expect_text(rig, other, "it belongs to another session");
    BATCH(rig, other, 5, ADD_WITH(AOI_ADD_ADOPT, .id = 1));
    expect_text(rig, other, "it belongs to another session, which is connected and has not released it to this one");
    BATCH(rig, zone, 3, RELEASE_ENTITY(1, 0));
    rig_expect_ack(rig, zone, 3, 1);
    BATCH(rig, other, 6, ADD_WITH(AOI_ADD_UPSERT, .id = 1));
    expect_text(rig, other, "it belongs to another session, which is connected as far as is known: UPSERT does not take that, ADOPT may");
    sessions_leave(&rig->sessions, zone->standing, 10000);
    BATCH(rig, other, 7, MOVE(1, 3, 3));
    expect_text(rig, other, "it belongs to another session, whose connection is gone: AddEntity with ADOPT takes it over");
    BATCH(rig, other, 8, OPEN_PLAYER(7));
    expect_text(rig, other, "it belongs to another session, whose connection is gone: OpenPlayer with take_over takes it over");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_gives_names_roles_and_secrets),
        cmocka_unit_test(a_faulty_file_is_refused_whole_with_its_line),
        cmocka_unit_test(a_zero_byte_is_refused_wherever_it_stands),
        cmocka_unit_test(a_file_that_others_can_read_is_refused),
        cmocka_unit_test(a_token_holds_while_its_name_secret_and_role_stand),
        cmocka_unit_test(what_has_become_of_a_token_is_told),
        cmocka_unit_test_setup_teardown(hello_needs_a_token_where_there_are_some, setup_with_tokens, rig_teardown),
        cmocka_unit_test_setup_teardown(a_reader_may_do_nothing_but_look, setup_with_tokens, rig_teardown),
        cmocka_unit_test_setup_teardown(a_space_is_destroyed_by_its_maker_or_an_admin, setup_with_tokens, rig_teardown),
        cmocka_unit_test_setup_teardown(who_does_not_own_it_is_told_what_would_help, setup_with_tokens, rig_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
