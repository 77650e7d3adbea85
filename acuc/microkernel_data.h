#pragma once
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "ir/value.h"

namespace acu {

/// Numbers to try: kinds of random and of extreme ones. Kinds repeat beyond `data_kinds` with other random numbers.
inline constexpr int data_kinds = 11;
template <class T>
std::vector<T> drawn(int kind, size_t count, std::mt19937_64& random);
extern template std::vector<float> drawn(int, size_t, std::mt19937_64&);
extern template std::vector<double> drawn(int, size_t, std::mt19937_64&);
extern template std::vector<int32_t> drawn(int, size_t, std::mt19937_64&);
extern template std::vector<int64_t> drawn(int, size_t, std::mt19937_64&);

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
    const auto view = std::as_bytes(std::span(values));
    return {view.begin(), view.end()};
}
template <class T>
std::vector<T> values_of(std::span<const std::byte> bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
}
template <class T>
bool same_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

/// The scalar reference of a monoid: takes values one after another, then judges a result. Sums and products are kept so that every order of combining is
/// allowed for; where an order may overflow and another may not, any result passes.
template <class T>
class Fold {
  public:
    explicit Fold(ir::Monoid m) : monoid_(m) {}
    void add(T x);
    /// What is wrong with `got`; empty: nothing.
    std::string fault(T got) const;

  private:
    std::string float_sum_fault(T got) const;
    std::string float_product_fault(T got) const;
    ir::Monoid monoid_;
    int64_t count_ = 0;
    bool nan_ = false, infinity_ = false, minus_infinity_ = false, zero_ = false, positive_ = false, negative_ = false, only_minus_zeros_ = true, any_ = false, all_ = true, odd_ = false;
    long double sum_ = 0, magnitude_ = 0, product_ = 1, exponents_ = 0;
    uint64_t whole_sum_ = 0, whole_product_ = 1;
    T most_{}, least_{};
};
extern template class Fold<float>;
extern template class Fold<double>;
extern template class Fold<int32_t>;
extern template class Fold<int64_t>;

/// Whether `got` is `wanted` within `tolerance`; NaN wants NaN.
template <class T>
bool near(T got, long double wanted, long double tolerance) {
    if (std::isnan(wanted) || std::isnan(got)) return std::isnan(wanted) && std::isnan(got);
    if (std::isinf(got)) return static_cast<long double>(got) == wanted || std::fabs(wanted) + tolerance > static_cast<long double>(std::numeric_limits<T>::max());
    return std::fabs(static_cast<long double>(got) - wanted) <= tolerance;
}

}  // namespace acu
