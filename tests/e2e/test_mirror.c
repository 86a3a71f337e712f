/* test_mirror.c: the client's mirror applies what the protocol allows and reports what it does not. */
#include "harness.h"

#include <string.h>

#include "client/libaoi_mirror.h"

static struct libaoi_mirror mirror;
static char why[200];

static int setup(void **state)
{
    (void)state;
    memset(&mirror, 0, sizeof mirror);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    libaoi_mirror_clear(&mirror);
    return 0;
}

static const float at[4] = {1, 2, 3, 4};
static const uint32_t ones[4] = {1, 1, 1, 1};

static struct libaoi_delta delta(uint64_t seq)
{
    return (struct libaoi_delta){.space = 1, .player = 7, .seq = seq, .flush = seq};
}

static struct libaoi_delta with_enters(struct libaoi_delta d, size_t n, const uint64_t *ids)
{
    d.enter_n = n;
    d.enter_id = ids;
    d.enter_x = d.enter_y = at;
    d.enter_layers = ones;
    return d;
}

static struct libaoi_delta with_updates(struct libaoi_delta d, size_t n, const uint64_t *ids)
{
    d.update_n = n;
    d.update_id = ids;
    d.update_x = d.update_y = at;
    return d;
}

static struct libaoi_delta with_leaves(struct libaoi_delta d, size_t n, const uint64_t *ids)
{
    d.leave_n = n;
    d.leave_id = ids;
    return d;
}

static void good(struct libaoi_delta d)
{
    if (libaoi_mirror_apply(&mirror, &d, why, sizeof why)) fail_msg("%s", why);
}

static void bad(struct libaoi_delta d, const char *part_of_why)
{
    assert_int_equal(libaoi_mirror_apply(&mirror, &d, why, sizeof why), -1);
    if (!strstr(why, part_of_why)) fail_msg("\"%s\" does not say \"%s\"", why, part_of_why);
}

#define ID(...)        \
    (const uint64_t[]) \
    {                  \
        __VA_ARGS__    \
    }

static void sections_apply_in_order_and_the_view_is_what_they_leave(void **state)
{
    (void)state;
    good(with_enters(delta(1), 3, ID(10, 11, 12)));
    struct libaoi_delta d = with_leaves(delta(2), 2, ID(10, 11));
    d = with_enters(d, 2, ID(11, 13));
    d = with_updates(d, 1, ID(12));
    d.payload_n = d.layers_n = 1;
    d.payload_id = d.layers_id = ID(12);
    d.payload = (const void *const[]){"xyz"};
    d.payload_len = (const uint32_t[]){3};
    d.layers = (const uint32_t[]){6};
    good(d);
    const struct libaoi_view *view = libaoi_mirror_find(&mirror, 1, 7);
    assert_int_equal(view->n, 3);
    assert_null(libaoi_view_find(view, 10));
    assert_int_equal(libaoi_view_find(view, 11)->entered, 2);
    assert_int_equal(libaoi_view_find(view, 12)->layers, 6);
    assert_memory_equal(libaoi_view_find(view, 12)->payload, "xyz", 3);
    assert_true(libaoi_view_find(view, 12)->pos[0] == 1);
    assert_non_null(libaoi_view_find(view, 13));
}

static void a_gap_or_a_repetition_of_a_delta_is_reported(void **state)
{
    (void)state;
    bad(with_enters(delta(2), 1, ID(1)), "expected delta 1");
    good(with_enters(delta(1), 1, ID(1)));
    bad(with_updates(delta(3), 1, ID(1)), "expected delta 2");
    bad(with_updates(delta(1), 1, ID(1)), "expected delta 2");
}

static void an_id_that_cannot_be_there_is_reported(void **state)
{
    (void)state;
    good(with_enters(delta(1), 2, ID(1, 2)));
    bad(with_leaves(delta(2), 1, ID(3)), "leave of 3");
    teardown(NULL);
    setup(NULL);
    good(with_enters(delta(1), 2, ID(1, 2)));
    bad(with_enters(delta(2), 1, ID(2)), "enter of 2");
    teardown(NULL);
    setup(NULL);
    good(with_enters(delta(1), 2, ID(1, 2)));
    bad(with_updates(delta(2), 1, ID(3)), "change of 3");
    teardown(NULL);
    setup(NULL);
    bad(with_enters(delta(1), 1, ID(0)), "id 0");
}

static void an_id_stands_once_in_a_delta(void **state)
{
    (void)state;
    good(with_enters(delta(1), 2, ID(1, 2)));
    bad(with_updates(delta(2), 2, ID(1, 1)), "twice");
    teardown(NULL);
    setup(NULL);
    bad(with_updates(with_enters(delta(1), 1, ID(1)), 1, ID(1)), "twice");
    teardown(NULL);
    setup(NULL);
    good(with_enters(delta(1), 2, ID(1, 2)));
    bad(with_leaves(delta(2), 2, ID(1, 1)), "leave of 1");
}

static void parts_make_one_delta_and_must_come_in_order(void **state)
{
    (void)state;
    struct libaoi_delta d = with_enters(delta(1), 1, ID(1));
    d.more = true;
    good(d);
    assert_true(libaoi_mirror_find(&mirror, 1, 7)->partial);
    d = with_enters(delta(1), 1, ID(2));
    d.part = 1;
    d.more = true;
    good(d);
    d = with_updates(delta(1), 1, ID(2));
    d.part = 2;
    bad(d, "twice");
    teardown(NULL);
    setup(NULL);
    d = with_enters(delta(1), 1, ID(1));
    d.more = true;
    good(d);
    bad(with_enters(delta(2), 1, ID(2)), "not finished");
    d = with_enters(delta(1), 1, ID(2));
    d.part = 2;
    bad(d, "expected part 1");
    d.part = 1;
    good(d);
    assert_false(libaoi_mirror_find(&mirror, 1, 7)->partial);
    assert_int_equal(libaoi_mirror_find(&mirror, 1, 7)->deltas, 1);
    d = with_updates(delta(2), 1, ID(2));
    d.more = true;
    good(d);
    d = with_leaves(delta(2), 1, ID(1));
    d.part = 1;
    bad(d, "out of order");
}

static void a_full_delta_is_everything_and_sets_the_sequence_of_a_new_view(void **state)
{
    (void)state;
    struct libaoi_delta d = with_enters(delta(5), 1, ID(1));
    d.full = true;
    good(d);
    d = with_enters(delta(6), 1, ID(2));
    d.full = true;
    good(d);
    assert_int_equal(libaoi_mirror_find(&mirror, 1, 7)->n, 1);
    assert_null(libaoi_view_find(libaoi_mirror_find(&mirror, 1, 7), 1));
    d = with_leaves(delta(7), 1, ID(2));
    d.full = true;
    bad(d, "nothing but enters");
}

static void a_closed_player_is_forgotten_and_begins_again_at_1(void **state)
{
    (void)state;
    struct libaoi_delta d = delta(2);
    good(with_enters(delta(1), 1, ID(1)));
    d.closed = true;
    d.flush = 1; /* no flush makes it */
    good(d);
    assert_null(libaoi_mirror_find(&mirror, 1, 7));
    assert_int_equal(mirror.closed, 1);
    good(with_enters(delta(1), 1, ID(1)));
}

static void what_was_known_already_and_empty_deltas_are_counted(void **state)
{
    (void)state;
    good(with_enters(delta(1), 1, ID(1)));
    good(with_updates(delta(2), 1, ID(1)));
    good(delta(3));
    assert_int_equal(libaoi_mirror_find(&mirror, 1, 7)->told_same, 1);
    assert_int_equal(libaoi_mirror_find(&mirror, 1, 7)->empty, 1);
    struct libaoi_delta d = with_updates(delta(4), 1, ID(1));
    d.flush = 3;
    bad(d, "flush 3 after 3");
}

static struct libaoi_delta with_messages(struct libaoi_delta d, size_t n, const uint64_t *from)
{
    static const void *const bytes[] = {"a", "b", "c", "d"};
    d.message_n = n;
    d.message_from = from;
    d.message = bytes;
    d.message_len = ones;
    return d;
}

static void messages_come_last_and_from_what_is_in_the_view(void **state)
{
    (void)state;
    good(with_messages(with_enters(delta(1), 2, ID(1, 2)), 4, ID(2, 1, 0, 2)));
    good(with_messages(with_updates(delta(2), 1, ID(2)), 1, ID(2)));
    assert_int_equal(libaoi_mirror_find(&mirror, 1, 7)->messages, 5);
    assert_int_equal(libaoi_mirror_find(&mirror, 1, 7)->empty, 0);
    bad(with_messages(with_leaves(delta(3), 1, ID(1)), 1, ID(1)), "message of 1, which is not in the view");
    teardown(NULL);
    setup(NULL);
    struct libaoi_delta d = with_messages(with_enters(delta(1), 1, ID(1)), 1, ID(1));
    d.more = true;
    good(d);
    d = with_messages(delta(1), 1, ID(1));
    d.part = 1;
    d.more = true;
    good(d);
    d = with_enters(delta(1), 1, ID(2));
    d.part = 2;
    bad(d, "out of order");
}

static void a_full_delta_and_a_closed_one_carry_no_messages(void **state)
{
    (void)state;
    struct libaoi_delta d = with_messages(with_enters(delta(1), 1, ID(1)), 1, ID(1));
    d.full = true;
    bad(d, "nothing but enters");
    teardown(NULL);
    setup(NULL);
    good(with_enters(delta(1), 1, ID(1)));
    d = with_messages(delta(2), 1, ID(1));
    d.closed = true;
    bad(d, "a closed delta is empty");
}

static void what_was_lost_is_told_once_in_the_last_part(void **state)
{
    (void)state;
    struct libaoi_delta d = with_enters(delta(1), 1, ID(1));
    d.full = true;
    d.messages_lost = 3;
    good(d);
    d = delta(2);
    d.messages_lost = 2;
    good(d);
    assert_int_equal(libaoi_mirror_find(&mirror, 1, 7)->messages_lost, 5);
    assert_int_equal(libaoi_mirror_find(&mirror, 1, 7)->empty, 0);
    d = with_updates(delta(3), 1, ID(1));
    d.more = true;
    d.messages_lost = 1;
    bad(d, "in the last part");
}

static void a_player_that_was_lost_comes_back_with_a_full_delta(void **state)
{
    (void)state;
    good(with_enters(delta(1), 1, ID(1)));
    libaoi_mirror_forget(&mirror, 1, 7);
    libaoi_mirror_forget(&mirror, 1, 8);
    assert_null(libaoi_mirror_find(&mirror, 1, 7));
    struct libaoi_delta d = with_enters(delta(9), 1, ID(2));
    d.full = true;
    good(d);
    good(with_leaves(delta(10), 1, ID(2)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sections_apply_in_order_and_the_view_is_what_they_leave, setup, teardown),
        cmocka_unit_test_setup_teardown(a_gap_or_a_repetition_of_a_delta_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_that_cannot_be_there_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(an_id_stands_once_in_a_delta, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_make_one_delta_and_must_come_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_delta_is_everything_and_sets_the_sequence_of_a_new_view, setup, teardown),
        cmocka_unit_test_setup_teardown(a_closed_player_is_forgotten_and_begins_again_at_1, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_known_already_and_empty_deltas_are_counted, setup, teardown),
        cmocka_unit_test_setup_teardown(messages_come_last_and_from_what_is_in_the_view, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_delta_and_a_closed_one_carry_no_messages, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_lost_is_told_once_in_the_last_part, setup, teardown),
        cmocka_unit_test_setup_teardown(a_player_that_was_lost_comes_back_with_a_full_delta, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
