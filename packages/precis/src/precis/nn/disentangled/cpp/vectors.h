// Vectors of one register of this processor: e^x, maxima, sums and transposed squares.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace precis {
namespace {

#if defined(__AVX512F__)
constexpr int64_t kLanes = 16;
#else
constexpr int64_t kLanes = 8;
#endif
typedef float Lanes __attribute__((vector_size(4 * kLanes)));
typedef int32_t Picks __attribute__((vector_size(4 * kLanes)));

template <typename Vector, typename Number>
inline Vector load(const Number* from) {
  Vector found;
  std::memcpy(&found, from, sizeof(found));
  return found;
}

template <typename Vector, typename Number>
inline void store(Number* to, const Vector& vector) {
  std::memcpy(to, &vector, sizeof(vector));
}

// Does not add to zero: x may be the bits of two bf16 numbers, which an addition would round or flush.
inline Lanes all(float x) {
#if defined(__AVX512F__)
  return (Lanes)_mm512_set1_ps(x);
#elif defined(__AVX2__)
  return (Lanes)_mm256_set1_ps(x);
#else
  return Lanes{} + x;
#endif
}

inline Lanes larger(const Lanes& a, const Lanes& b) {
#if defined(__AVX512F__)
  return (Lanes)_mm512_max_ps((__m512)a, (__m512)b);
#elif defined(__AVX2__)
  return (Lanes)_mm256_max_ps((__m256)a, (__m256)b);
#else
  return a > b ? a : b;
#endif
}

#if defined(__AVX512F__)
constexpr Picks kUpwards = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#else
constexpr Picks kUpwards = {0, 1, 2, 3, 4, 5, 6, 7};
#endif

inline Lanes reversed(const Lanes& x) { return __builtin_shuffle(x, kLanes - 1 - kUpwards); }

inline float largest(Lanes x) {
  for (int step = kLanes / 2; step; step /= 2) x = larger(x, __builtin_shuffle(x, kUpwards ^ step));
  return x[0];
}

inline float sum_of(Lanes x) {
  for (int step = kLanes / 2; step; step /= 2) x += __builtin_shuffle(x, kUpwards ^ step);
  return x[0];
}

// e^x with an error of two units in the last place; 0 below -87.
inline Lanes exponential(const Lanes& x) {
  const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  const Lanes shifted = x * 1.44269504f + rounder;
  const Lanes whole = shifted - rounder;
#if defined(__FMA__)
  const Lanes rest = x - whole * 0.693147182f;
#else
  const Lanes rest = (x - whole * 0.693359375f) + whole * 2.12194440e-4f;
#endif
  // 1 + r + r^2 p(r) with the smallest relative error over |r| <= log(2) / 2, 3e-9
  Lanes p = all(1.3814540106e-3f);
  p = p * rest + 8.3687451362e-3f;
  p = p * rest + 4.1668390787e-2f;
  p = p * rest + 1.6666520399e-1f;
  p = p * rest + 4.9999993432e-1f;
  p = p * rest + 1.0f;
  p = p * rest + 1.0f;
  const Picks power = (Picks)p + ((Picks)shifted << 23);  // times 2^whole
  return (Lanes)(x < -87.0f ? Picks{} : power);
}

inline float exponential(float x) { return exponential(all(x))[0]; }

// Transposes t: swaps squares of s x s with those across the diagonal.
inline void transpose(Lanes t[kLanes]) {
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    const Picks high = kUpwards & step;
    const Picks kept = high ? (kUpwards ^ step) + static_cast<int>(kLanes) : kUpwards;
    const Picks taken = high ? kUpwards + static_cast<int>(kLanes) : kUpwards ^ step;
#pragma GCC unroll 16
    for (int low = 0; low < kLanes; ++low) {
      if (low & step) continue;
      const Lanes a = t[low], b = t[low + step];
      t[low] = __builtin_shuffle(a, b, kept);
      t[low + step] = __builtin_shuffle(a, b, taken);
    }
  }
}

}  // namespace
}  // namespace precis
