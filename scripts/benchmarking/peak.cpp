// What a core can do at most: fused multiply-adds on vectors that stay in registers. Twelve sums do not
// wait for each other, as many as hide the latency of an addition and leave room in 16 registers.
#include <cstdint>

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#elif defined(__AVX__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
typedef float Vector __attribute__((vector_size(BYTES)));
constexpr int SUMS = 12;

// Floating-point operations of `rounds` rounds; `out` has one vector, so that nothing is left out.
extern "C" __attribute__((visibility("default"))) int64_t multiply_and_add(int64_t rounds, float *out) {
    Vector sums[SUMS], factor, term;
    for (unsigned i = 0; i < BYTES / sizeof(float); ++i) {
        factor[i] = 0.5f;
        term[i] = 1.0f;
    }
    for (auto &sum : sums) sum = term;
    for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
        for (int k = 0; k < SUMS; ++k) sums[k] = sums[k] * factor + term;
        // Else the compiler may see that the sums no longer change.
        asm volatile("" : "+x"(factor), "+x"(term));
    }
    Vector total = sums[0];
    for (int k = 1; k < SUMS; ++k) total += sums[k];
    for (unsigned i = 0; i < BYTES / sizeof(float); ++i) out[i] = total[i];
    return rounds * SUMS * (BYTES / sizeof(float)) * 2;
}
