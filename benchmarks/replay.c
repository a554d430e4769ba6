/* The reference loops: what a careful C programmer would write for a batch of rounds.
 *
 * They work on the state of calibrant.kernels.layout, whose names (BLOCKS, STRIDE, ...) are
 * defined on the compiler's command line, so that forecasts, means and the whole state
 * afterwards can be compared with ours bit for bit. Outcomes are learned at
 * once, so the remembered position always stands where the scores change sign, and the
 * search looks at two cells; what the package needs for late outcomes is left out here.
 */
#include <math.h>
#include <stdint.h>

typedef struct {
    int64_t low; /* the lower cell of the pair */
    double weight; /* its probability; one if it is announced alone */
} pair;

static inline uint64_t turned(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static inline void mix(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = turned(v[1], 13) ^ v[0];
    v[3] = turned(v[3], 16) ^ v[2];
    v[0] = turned(v[0], 32) + v[3];
    v[2] += v[1];
    v[1] = turned(v[1], 17) ^ v[2];
    v[3] = turned(v[3], 21) ^ v[0];
    v[2] = turned(v[2], 32);
}

/* SipHash-2-4 of eight bytes of the clock and seven of the block's number. */
static inline double coin(const int64_t *secret, uint64_t block, uint64_t clock) {
    uint64_t low = (uint64_t)secret[0], high = (uint64_t)secret[1], last = block | 15ull << 56;
    uint64_t v[4] = {low ^ 0x736f6d6570736575u, high ^ 0x646f72616e646f6du,
                     low ^ 0x6c7967656e657261u, high ^ 0x7465646279746573u};
    v[3] ^= clock;
    mix(v);
    mix(v);
    v[0] ^= clock;
    v[3] ^= last;
    mix(v);
    mix(v);
    v[0] ^= last;
    v[2] ^= 0xff;
    for (int k = 0; k < 4; k++) mix(v);
    return (double)((v[0] ^ v[1] ^ v[2] ^ v[3]) >> 11) * 0x1p-53;
}

static inline int64_t bucket_of(const double *edges, int64_t buckets, double raw) {
    int64_t j = (int64_t)(raw * (double)buckets);
    j = j < buckets - 1 ? j : buckets - 1;
    return j - (edges[j] > raw) + (edges[j + 1] <= raw);
}

/* What the three rules differ in: score, weigh and learn. `values` are the grid's scaled
 * numerators for the first two rules and its real values for the third. */

static inline int64_t foster_hart_score(const int64_t *cells, const int64_t *values, int64_t k) {
    (void)values;
    return cells[2 * k];
}

static inline double foster_hart_weigh(const int64_t *cells, const int64_t *values, int64_t k) {
    const int64_t *c = cells + 2 * k;
    double here = (double)c[0] * (double)c[3], above = -(double)c[2] * (double)c[1];
    (void)values;
    return above / (here + above);
}

static inline int64_t regret_matching_score(const int64_t *cells, const int64_t *values, int64_t k) {
    int64_t gap = 2 * cells[2 * k], count = cells[2 * k + 1];
    int64_t up = gap - (values[k + 1] - values[k]) * count;
    int64_t down = gap + (values[k] - values[k - 1]) * count;
    return (up > 0 ? up : 0) + (down < 0 ? down : 0);
}

static inline double regret_matching_weigh(const int64_t *cells, const int64_t *values, int64_t k) {
    const int64_t *c = cells + 2 * k;
    int64_t width = values[k + 1] - values[k];
    double here = (double)(2 * c[0] - width * c[1]);
    double above = (double)(-2 * c[2] - width * c[3]);
    return above / (here + above);
}

static inline double blackwell_score(const double *cells, const double *values, int64_t k) {
    (void)values;
    return cells[4 * k + 2];
}

static inline double blackwell_weigh(const double *cells, const double *values, int64_t k) {
    double here = cells[4 * k + 2], above = -cells[4 * k + 6];
    (void)values;
    return above / (here + above);
}

static inline void gaps_learn(int64_t *words, int64_t *block, int64_t cell, int64_t outcome) {
    int64_t *c = block + GAPS_HEAD + 2 * cell;
    c[0] += words[SCALE] * outcome - words[words[TABLE] + cell];
    c[1] += 1;
}

/* The adaptive step with realised updates, the defaults of `Blackwell`. */
static inline void blackwell_learn(int64_t *words, int64_t *block, int64_t cell, int64_t outcome) {
    const double *values = (const double *)words + words[TABLE] + words[CELLS] + VALUES;
    int64_t *c = block + BLACKWELL_HEAD + 4 * cell;
    double *r = (double *)c;
    double push = (double)outcome - values[cell];
    c[0] += words[SCALE] * outcome - words[words[TABLE] + cell];
    c[1] += 1;
    block[BLACKWELL_LEARNED] += 1;
    if (push != 0.0) {
        double theta;
        r[3] += push * push;
        theta = r[2] + sqrt(2.0 / r[3]) * push;
        theta = theta > -1.0 ? theta : -1.0;
        r[2] = theta < 1.0 ? theta : 1.0;
    }
}

/* Two cells whose scores point towards each other share the forecast; a cell without a score,
 * or with one that points off the grid, has it alone. */
#define MAKE_FORECAST(rule, number)                                                              \
    static inline pair rule##_forecast(const number *cells, const number *values, int64_t count, \
                                       int64_t position) {                                       \
        number score = rule##_score(cells, values, position), answer;                            \
        int64_t other = position + (score > 0) - (score < 0), low = position - (score < 0);      \
        if (score == 0 || other < 0 || other == count) return (pair){position, 1.0};              \
        answer = rule##_score(cells, values, other);                                              \
        if (answer == 0) return (pair){other, 1.0};                                              \
        return (pair){low, rule##_weigh(cells, values, low)};                                    \
    }

#define MAKE_REPLAY(rule, number, own_values, learn, head)                                       \
    MAKE_FORECAST(rule, number)                                                                  \
    static void rule##_row(int64_t *words, int64_t place, const double *raw,                     \
                           const uint8_t *outcomes, double *forecast, double *mean,              \
                           int64_t rounds) {                                                     \
        double *reals = (double *)words;                                                         \
        const double *edges = reals + words[EDGES];                                              \
        const double *grid = reals + words[TABLE] + words[CELLS] + VALUES;                       \
        const int64_t buckets = words[BUCKETS], count = words[CELLS];                            \
        const int64_t stride = words[STRIDE];                                                    \
        int64_t *row = words + place, *blocks = row + words[BLOCKS];                             \
        double charged = reals[place + RAW_LOSS];                                                \
        for (int64_t t = 0; t < rounds; t++) {                                                   \
            double p = raw[t];                                                                   \
            int64_t y = outcomes[t];                                                             \
            int64_t bucket = bucket_of(edges, buckets, p), *block = blocks + bucket * stride;    \
            double u = coin(row + SECRET, (uint64_t)bucket, (uint64_t)block[CLOCK]);             \
            pair made = rule##_forecast((const number *)(block + head),                          \
                                        (const number *)(own_values), count, block[POSITION]);   \
            int64_t cell = made.low + (u >= made.weight);                                        \
            forecast[t] = grid[cell];                                                            \
            mean[t] = grid[made.low] * made.weight +                                             \
                      grid[made.low + (made.weight < 1.0)] * (1.0 - made.weight);                \
            learn(words, block, cell, y);                                                        \
            block[POSITION] = cell;                                                              \
            block[CLOCK] += 1;                                                                   \
            charged += ((double)y - p) * ((double)y - p);                                        \
        }                                                                                        \
        reals[place + RAW_LOSS] = charged;                                                       \
        row[ISSUED] += rounds;                                                                   \
        row[ROUNDS] += rounds;                                                                   \
    }                                                                                            \
    void rule(int64_t *words, const double *raw, const uint8_t *outcomes, double *forecast,      \
              double *mean, int64_t rounds) {                                                    \
        rule##_row(words, words[ROWS], raw, outcomes, forecast, mean, rounds);                   \
    }                                                                                            \
    void rule##_rows(int64_t *words, const double *raw, const uint8_t *outcomes,                 \
                     double *forecast, double *mean, const int64_t *places,                      \
                     const int64_t *bounds, int64_t rows) {                                      \
        for (int64_t k = 0; k < rows; k++) {                                                     \
            int64_t a = bounds[k];                                                               \
            rule##_row(words, places[k], raw + a, outcomes + a, forecast + a, mean + a,          \
                       bounds[k + 1] - a);                                                       \
        }                                                                                        \
    }

MAKE_REPLAY(foster_hart, int64_t, words + words[TABLE], gaps_learn, GAPS_HEAD)
MAKE_REPLAY(regret_matching, int64_t, words + words[TABLE], gaps_learn, GAPS_HEAD)
MAKE_REPLAY(blackwell, double, grid, blackwell_learn, BLACKWELL_HEAD)
