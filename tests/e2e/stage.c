/* stage.c: sets up the space of the cases, and runs a case on both indexes. */
#include "stage.h"

struct rig rig;
struct client *mover, *eye;

void stage_start(const char *const *options, uint32_t index, float radius)
{
    rig_start(&rig, options);
    mover = rig_client(&rig);
    eye = rig_client(&rig);
    make_space(mover, SPACE, index);
    add(mover, SPACE, U, 0, 0, radius);
    client_ok(mover);
}

void stage_start_watched(const char *const *options, uint32_t index)
{
    stage_start(options, index, 10);
    libaoi_subscribe(eye->c, SPACE, P, U, false);
    client_ok(eye);
    told_after_flush("");
}

void told_after_flush(const char *text)
{
    flush(mover, SPACE, eye);
    expect_told(eye, SPACE, P, text);
}

void on_both_indexes(void (*begin)(uint32_t index), void (*run)(void))
{
    for (uint32_t index = LIBAOI_GRID; index <= LIBAOI_CROSSLIST; index++) {
        begin(index);
        run();
        rig_stop(&rig);
    }
}
