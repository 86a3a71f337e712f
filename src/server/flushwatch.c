/* flushwatch.c: what is counted of flushes, and the online oracle that looks after them. */
#include "server/flushwatch.h"

#include <uv.h>

#include "base/log.h"

#define ORACLE_BUDGET 20000                          /* tests of a rule for each player: about 0.2 ms */
#define ORACLE_SHARE 100                             /* it may take one part in so many of the time */
#define ORACLE_CREDIT_NS ((int64_t)10 * 1000 * 1000) /* saved up while it is quiet, at most */

#define TELL_NS ((uint64_t)1000 * 1000 * 1000) /* a mismatch that stays is not logged with every flush */

void flushwatch_init(struct flushwatch *watch, struct metrics *metrics, const struct config *config)
{
    *watch = (struct flushwatch){
        .metrics = metrics, .config = config, .oracle = aoi_oracle_new(), .at_ns = uv_hrtime(), .credit_ns = ORACLE_CREDIT_NS};
}

void flushwatch_clear(struct flushwatch *watch)
{
    aoi_oracle_free(watch->oracle);
    watch->oracle = NULL;
}

/* Whether it has not had its share of the time yet. */
static bool oracle_may_work(struct flushwatch *watch, uint64_t now_ns)
{
    watch->credit_ns += (int64_t)((now_ns - watch->at_ns) / ORACLE_SHARE);
    watch->at_ns = now_ns;
    if (watch->credit_ns > ORACLE_CREDIT_NS) watch->credit_ns = ORACLE_CREDIT_NS;
    return watch->credit_ns >= 0;
}

/* now_ns: the end of the flush. */
static void ask_oracle(struct flushwatch *watch, const struct aoi_space *space, uint64_t now_ns)
{
    struct metrics *metrics = watch->metrics;
    struct aoi_oracle_result result = {0};
    if (watch->config->oracle_players == 0 || !oracle_may_work(watch, now_ns)) return;
    aoi_oracle_check(watch->oracle, space, watch->config->oracle_players, ORACLE_BUDGET, &result);
    watch->credit_ns -= (int64_t)(uv_hrtime() - now_ns);
    metrics->oracle_checked += result.checked;
    metrics->oracle_left_out += result.left_out;
    metrics->oracle_mismatches += result.mismatches;
    if (result.mismatches == 0 || (watch->told_ns != 0 && now_ns - watch->told_ns < TELL_NS)) return;
    watch->told_ns = now_ns;
    log_error("oracle", "space=%llu player=%llu entity=%llu mismatches=%llu why=\"a view is not what brute force gives: a bug, please report it\"",
              (unsigned long long)aoi_space_id(space), (unsigned long long)result.player, (unsigned long long)result.entity,
              (unsigned long long)result.mismatches);
}

void flushwatch_done(struct flushwatch *watch, const struct aoi_space *space, uint64_t work_ns, uint64_t latency_ns)
{
    histogram_add(&watch->metrics->flush, work_ns);
    histogram_add(&watch->metrics->latency, latency_ns);
    ask_oracle(watch, space, uv_hrtime());
}

void flushwatch_space_ends(struct flushwatch *watch, const struct aoi_space *space)
{
    aoi_space_stats(space, &watch->metrics->ended);
}
