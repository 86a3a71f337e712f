/* test_why.c: scripted situations, of which aoictl and the client say the rule that a person would give. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static struct rig rig;
static char output[16384];

static int setup(void **state)
{
    (void)state;
    rig_start(&rig, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rig_stop(&rig);
    return 0;
}

/* A shell's command line that runs the aoictl beside the daemon; its length. */
static size_t aoictl_command(char *out, size_t size, const char *arguments)
{
    char directory[512];
    const char *path = getenv("AOID");
    snprintf(directory, sizeof directory, "%s", path ? path : "build/aoid");
    char *slash = strrchr(directory, '/');
    assert_non_null(slash);
    *slash = '\0';
    int len = snprintf(out, size, "timeout 60 %s/aoictl --address %s %s", directory, rig.daemon.address, arguments);
    assert_in_range(len, 1, size - 1);
    return (size_t)len;
}

/* What aoictl prints for these lines, complaints included. Returns its exit status. */
static int aoictl(const char *lines)
{
    char command[4096];
    size_t len = aoictl_command(command, sizeof command, "- 2>&1 <<'END'\n");
    assert_in_range(snprintf(command + len, sizeof command - len, "%s\nEND\n", lines), 1, sizeof command - len - 1);
    FILE *f = popen(command, "r");
    assert_non_null(f);
    output[fread(output, 1, sizeof output - 1, f)] = '\0';
    int status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_output(const char *name, const char *text)
{
    if (!strstr(output, text)) fail_msg("%s: \"%s\" does not say \"%s\"", name, output, text);
}

/* In a space that flushes by command, with unit 42 at (0,0) of radius 10, and player 1000 subscribed to it. */
static const struct {
    const char *name, *settings, *lines, *says[4];
} situations[] = {
    {"walks up to somebody",
     "",
     "add 1 7 9,8 \nflush 1",
     {"seen: in the range of unit 42 (9 away along an axis, radius 10)", "rule        RANGE", "told        yes"}},
    {"walks up to somebody who sees in a circle",
     "shape=sphere",
     "add 1 7 3,4 \nflush 1",
     {"seen: in the range of unit 42 (5 away, radius 10)\n", "distance    5 in a straight line"}},
    {"stands two cells off",
     "shape=cells cell_size=10",
     "add 1 7 25,1 \nflush 1",
     {"out of every range, the nearest is unit 42 (2 cells away, cell_range 1)\n", "distance    25.0199"}},
    {"stands across the street",
     "",
     "add 1 7 30,40",
     {"not seen: out of every range", "(40 away along an axis, radius 10)", "rule        FAR", "seen        no"}},
    {"is a ghost in another layer",
     "",
     "add 1 7 3,4 layers=4 \nplayer 1 1000 mask=3",
     {"layers 0x4", "mask 0x3", "no bit in common", "rule        MASK"}},
    {"is stealthed", "", "add 1 7 3,4 \noverride 1 1000 7 hide \nflush 1", {"not seen: overridden with HIDE", "rule        HIDE"}},
    {"is of the party, far away",
     "",
     "add 1 7 3000,4 \noverride 1 1000 7 show \nflush 1",
     {"seen: overridden with SHOW", "rule        SHOW", "told        yes"}},
    {"dances at the edge",
     "leave_margin=2",
     "add 1 7 9,0 \nflush 1 \nmove 1 7 11,0 \nflush 1",
     {"within the leave_margin of 2 around the range of unit 42 (11 away along an axis, radius 10)", "rule        LEAVE_MARGIN", "margin      2"}},
    {"ran away a moment ago",
     "min_stay_ms=3600000",
     "add 1 7 9,0 \nflush 1 \nmove 1 7 500,0 \nflush 1",
     {"min_stay_ms keeps it for another ", "rule        MIN_STAY", "stay_left ", "seen        yes"}},
    {"is one of too many",
     "max_view=2",
     "add 1 1 1,0 \nadd 1 2 2,0 \nadd 1 7 3,0 \nflush 1",
     {"not seen: rank 3 of a max_view of 2", "rule        RANK", "max_view    2", "rank        3"}},
    {"comes with many others",
     "max_enter_per_flush=2",
     "add 1 1 1,0 \nadd 1 2 2,0 \nadd 1 3 3,0 \nadd 1 4 4,0 \nadd 1 7 5,0 \nflush 1",
     {"not seen yet: it waits for max_enter_per_flush", "rule        ENTER_BUDGET", "seen        yes", "told        no"}},
    {"is before somebody blind",
     "",
     "set 1 42 radius=0 \nadd 1 7 1,0 \nflush 1",
     {"neither a viewport nor a unit of a radius other than 0", "rule        BLIND"}},
    {"is a castle on the horizon",
     "",
     "add 1 7 100,0 appeal=90 \nflush 1",
     {"seen: in the range of unit 42 (100 away along an axis, radius 10, appeal 90)", "rule        RANGE"}},
    {"is on the map",
     "",
     "add 1 7 100,0 \nplayer 1 1000 box=90,-5,130,5 \nflush 1",
     {"seen: in the viewport 90,-5 to 130,5\n", "rule        RANGE", "by          the viewport"}},
    {"is off the map",
     "",
     "add 1 7 100,0 \nset 1 42 radius=0 \nplayer 1 1000 box=-10,-10,10,10",
     {"not seen: outside the viewport -10,-10 to 10,10\n", "rule        FAR"}},
    {"is oneself, hidden", "", "player 1 1000 self=7 \noverride 1 1000 7 hide", {"UNKNOWN_ENTITY"}},
    {"is one's own hero, even hidden",
     "",
     "add 1 7 500,0 \nplayer 1 1000 self=7 \noverride 1 1000 7 hide \nflush 1",
     {"subscribed with include_self", "rule        INCLUDE_SELF", "told        yes"}},
    {"is one's own hero, not asked for",
     "",
     "add 1 7 500,0 radius=10 \nplayer 1 1000 unit=7 \nflush 1",
     {"not seen: it is a unit of the player's own, and no unit sees itself", "include_self", "seen        no"}},
    {"has just left, and nobody was told yet",
     "",
     "add 1 7 3,4 \nflush 1 \nmove 1 7 30,40",
     {"not seen: out of every range", "the next flush takes it away", "told        yes", "seen        no"}},
    {"is far enough to be told less often",
     "update_tiers=\"5:1 *:4\"",
     "add 1 7 6,0 \nflush 1",
     {"seen: in the range", "updated every 4 flushes", "period      4"}},
};

static void a_person_would_give_the_same_rule(void **state)
{
    (void)state;
    char lines[1024];
    for (int crosslist = 0; crosslist < 2; crosslist++) {
        for (size_t i = 0; i < sizeof situations / sizeof *situations; i++) {
            snprintf(lines, sizeof lines,
                     "create 1 persistent=no flush_ms=0 index=%s %s\nadd 1 42 0,0 radius=10\nplayer 1 1000 unit=42\n%s\nwhy 1 1000 7",
                     crosslist ? "crosslist" : "grid", situations[i].settings, situations[i].lines);
            aoictl(lines);
            for (int k = 0; k < 4 && situations[i].says[k]; k++) expect_output(situations[i].name, situations[i].says[k]);
        }
    }
}

static void the_first_line_is_the_sentence_and_the_query_says_the_same(void **state)
{
    (void)state;
    assert_int_equal(aoictl("create 1 persistent=no flush_ms=0\nadd 1 42 0,0 radius=10\nadd 1 7 3,4\nplayer 1 1000 unit=42\nwhy 1 1000 7"), 0);
    assert_ptr_equal(strstr(output, "seen: in the range of unit 42 (4 away along an axis, radius 10); the next flush tells it\nrule        RANGE\n"),
                     output);
    assert_int_equal(aoictl("create 1 persistent=no\nadd 1 7 3,4\nwhy 1 1000 7"), 1);
    expect_output("no player", "UNKNOWN_PLAYER");
    assert_int_equal(aoictl("create 1 persistent=no\nplayer 1 1000 box=0,0,9,9\nwhy 1 1000 7\nquery 1 entity 7\nremove 1 7"), 1);
    expect_output("no entity", "there is no such entity; it has not been added to this space, or has left it since\naoictl: line 4: ");
    expect_output("no entity", "line 5: UNKNOWN_ENTITY (7): there is no such entity; an entity goes with the connection that added it");
    assert_int_equal(aoictl("why 1 1000"), 2);
    expect_output("usage", "why SPACE PLAYER ENTITY");
}

static void the_numbers_come_through_the_client(void **state)
{
    (void)state;
    struct client *c = rig_client(&rig);
    struct libaoi_why why;
    const struct libaoi_settings settings = {.shape = LIBAOI_SPHERE, .leave_margin = 2.5f, .max_view = 2, .update_tiers = "4:1 8:2 *:3"};
    assert_int_equal(libaoi_create_space(c->c, 1, &settings, false), 0);
    add(c, 1, 42, 0, 0, 10);
    for (uint64_t id = 1; id <= 4; id++)
        libaoi_add(c->c, 1, LIBAOI_ADD_NEW,
                   &(struct libaoi_entity){.id = id, .pos = {(float)(2 * id), 0}, .layers = 3, .appeal = 0.5f, .priority = id == 3});
    libaoi_open_player_with(c->c, 1, 1000, &(struct libaoi_player){.mask = 2, .leave_margin = 1.5f});
    libaoi_subscribe(c->c, 1, 1000, 42, false);
    flush(c, 1, c);
    expect_told(c, 1, 1000, "E1 E3"); /* priority before distance */
    assert_int_equal(libaoi_query_why(c->c, 1, 1000, 3, TIMEOUT_MS, &why), 0);
    assert_string_equal(libaoi_rule_name(why.rule), "RANGE");
    assert_true(why.told && why.seen && !why.by_viewport && why.unit == 42);
    assert_true(why.distance == 6 && why.radius == 10 && why.appeal == 0.5f && why.margin == 1.5f);
    assert_true(why.layers == 3 && why.mask == 2 && why.rank == 1 && why.max_view == 2 && why.period == 2 && why.stay_left_ms == 0);
    assert_true(why.text[0] != '\0');
    assert_int_equal(libaoi_query_why(c->c, 1, 1000, 2, TIMEOUT_MS, &why), 0);
    assert_true(why.rule == LIBAOI_RULE_RANK && !why.told && !why.seen && why.rank == 3);
    assert_int_equal(libaoi_query_why(c->c, 1, 1000, 99, TIMEOUT_MS, &why), LIBAOI_EREFUSED);
    assert_int_equal(libaoi_refused_code(c->c), LIBAOI_UNKNOWN_ENTITY);
    assert_string_equal(libaoi_rule_name(LIBAOI_RULE_ENTER_BUDGET), "ENTER_BUDGET");
    assert_string_equal(libaoi_rule_name(0), "UNKNOWN");
    assert_string_equal(libaoi_rule_name(LIBAOI_RULE_ENTER_BUDGET + 1), "UNKNOWN");
}

static void the_other_verbs_do_what_they_say(void **state)
{
    (void)state;
    assert_int_equal(
        aoictl("create 1 flush_ms=0 leave_margin=2 min_stay_ms=5 max_view=60 max_enter_per_flush=7 update_tiers=\"30:1 60:2 *:4\"\nspaces"), 0);
    expect_output("spaces", "leave_margin=2 min_stay_ms=5 max_view=60 max_enter_per_flush=7 update_tiers=\"30:1 60:2 *:4\"");
    assert_int_equal(aoictl("set-space 1 max_view=0 leave_margin=0 min_stay_ms=0 max_enter_per_flush=0 update_tiers=\nspaces"), 0);
    expect_output("spaces", "nobody, persistent\n");
    assert_int_equal(aoictl("set-space 1 shape=box"), 2);
    expect_output("set-space", "no setting that can be changed; these are flush_ms");
    assert_int_equal(aoictl("set-space 1 update_tiers=\"60:1 30:2\""), 1);
    expect_output("set-space", "update_tiers");
    assert_int_equal(aoictl("add 1 1 0,0\nadd 1 2 3,0 appeal=5 priority=9 report_observed=yes\nadd 1 3 9,9\nquery 1 nearest 1,0 2\nquery 1 entity 2\n"
                            "player 1 5 box=-1,-1,5,5 max_view=1\nflush 1\nquery 1 observers 2\nset 1 1 appeal=1 priority=10\nflush 1\n"
                            "query 1 density 0,0,10,10 5x5"),
                     0);
    expect_output("nearest", "1 0 0\n2 3 0\n");
    expect_output("entity", "appeal      5\npriority    9\n");
    expect_output("observers", "observed 2 in space 1\n");
    expect_output("observers", "1 players\n5\n");
    expect_output("set", "unobserved 2 in space 1\n");
    expect_output("density", "|    @|\n|     |\n|     |\n|     |\n|@@   |\n");
    assert_int_equal(aoictl("query 1 density 0,0,10,10 500x5"), 2);
    expect_output("density", "write COLUMNSxROWS");
    assert_int_equal(aoictl("publish 1 near 1,1 boo"), 2);
    assert_int_equal(aoictl("override 1 5 2 invisible"), 2);
    expect_output("override", "hide, show or none");
    assert_int_equal(aoictl("override 1 5 2 hide"), 1);
    expect_output("override", "UNKNOWN_PLAYER");
    assert_int_equal(aoictl("release 1 entity 9"), 1);
    assert_int_equal(aoictl("adopt 1 9"), 1);
    expect_output("adopt", "UNKNOWN_ENTITY");
    assert_int_equal(aoictl("release 1 9"), 2);
}

/* Reads a line of what a program prints, behind those that say which flush; it must be this. */
static void expect_line(FILE *f, const char *text)
{
    char line[256];
    do {
        if (!fgets(line, sizeof line, f)) fail_msg("no line where \"%s\" is due", text);
    } while (strncmp(line, "flush ", 6) == 0);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line, text);
}

static void watch_prints_messages_and_takes_the_settings_of_a_player(void **state)
{
    (void)state;
    char command[700];
    struct client *mover = rig_client(&rig);
    libaoi_create_space(mover->c, 1, &(struct libaoi_settings){.flush_ms = 5}, false);
    add(mover, 1, 42, 0, 0, 10);
    add(mover, 1, 7, 1, 0, 0);
    add(mover, 1, 8, 2, 0, 0);
    client_ok(mover);
    aoictl_command(command, sizeof command, "watch 1 --unit 42 --max_view=1 --count 3");
    FILE *f = popen(command, "r");
    assert_non_null(f);
    expect_line(f, "enter 7 1 0");
    publish(mover, 1, 8, "unheard");
    publish(mover, 1, 7, "say \"hi\"");
    publish(mover, 1, 7, "");
    client_ok(mover);
    expect_line(f, "message 7 \"say \\x22hi\\x22\"");
    expect_line(f, "message 7 \"\"");
    assert_int_equal(pclose(f), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_person_would_give_the_same_rule, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_line_is_the_sentence_and_the_query_says_the_same, setup, teardown),
        cmocka_unit_test_setup_teardown(the_numbers_come_through_the_client, setup, teardown),
        cmocka_unit_test_setup_teardown(watch_prints_messages_and_takes_the_settings_of_a_player, setup, teardown),
        cmocka_unit_test_setup_teardown(the_other_verbs_do_what_they_say, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
