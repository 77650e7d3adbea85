#include "acuc/microkernel_data.h"

#include <algorithm>

namespace acu {

using ir::Monoid;

// ---- data

namespace {

template <class T>
T one_float(int kind, std::mt19937_64& random) {
    constexpr T inf = std::numeric_limits<T>::infinity();
    std::normal_distribution<double> normal;
    const double z = normal(random);
    const uint64_t dice = random() % 16;
    switch (kind) {
        case 1: return static_cast<T>(std::ldexp(z, static_cast<int>(random() % 40) - 20));
        case 2: return dice == 0 ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(z);
        case 3: return dice == 0 ? inf : static_cast<T>(z);
        case 4: return dice == 0 ? -inf : dice == 1 ? inf : static_cast<T>(z);
        case 5: return std::numeric_limits<T>::denorm_min() * static_cast<T>(random() % 1000) * (dice < 8 ? T(1) : T(-1));
        case 6: return dice < 8 ? -T(0) : T(0);
        case 7: return static_cast<T>(random() % 3);
        case 8: return dice < 12 ? -inf : static_cast<T>(z);
        case 9: return std::numeric_limits<T>::max() / static_cast<T>(1 + random() % 8);
        case 10: return static_cast<T>(1 + z / 64);
        default: return static_cast<T>(z);
    }
}

template <class T>
T one_whole(int kind, std::mt19937_64& random) {
    const uint64_t x = random();
    switch (kind) {
        case 1: return static_cast<T>(x % 201) - 100;
        case 2: return std::numeric_limits<T>::min();
        case 3: return std::numeric_limits<T>::max();
        case 4: return static_cast<T>(x % 3);
        case 5: return 0;
        case 6: return x % 64 ? 0 : 1;
        case 7: return x % 64 ? 1 : 0;
        case 8: return x % 2 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
        default: return static_cast<T>(x);
    }
}

}  // namespace

template <class T>
std::vector<T> drawn(int kind, size_t count, std::mt19937_64& random) {
    std::vector<T> values(count);
    for (T& v : values) {
        if constexpr (std::is_floating_point_v<T>) v = one_float<T>(kind % data_kinds, random);
        else v = one_whole<T>(kind % data_kinds, random);
    }
    // some rows of zeros and infinities are of one kind throughout
    if constexpr (std::is_floating_point_v<T>)
        if (count && random() % 3 == 0 && (kind % data_kinds == 6 || kind % data_kinds == 8)) std::ranges::fill(values, values[0]);
    return values;
}
template std::vector<float> drawn(int, size_t, std::mt19937_64&);
template std::vector<double> drawn(int, size_t, std::mt19937_64&);
template std::vector<int32_t> drawn(int, size_t, std::mt19937_64&);
template std::vector<int64_t> drawn(int, size_t, std::mt19937_64&);

// ---- reference

template <class T>
void Fold<T>::add(T x) {
    ++count_;
    any_ |= x != T(0);
    all_ &= x != T(0);
    zero_ |= x == T(0);
    whole_sum_ += static_cast<uint64_t>(static_cast<int64_t>(std::is_integral_v<T> ? x : T(0)));
    whole_product_ *= static_cast<uint64_t>(static_cast<int64_t>(std::is_integral_v<T> ? x : T(0)));
    most_ = count_ == 1 || x > most_ ? x : most_;
    least_ = count_ == 1 || x < least_ ? x : least_;
    if constexpr (std::is_floating_point_v<T>) {
        nan_ |= std::isnan(x);
        infinity_ |= std::isinf(x) && x > 0;
        minus_infinity_ |= std::isinf(x) && x < 0;
        positive_ |= x > 0;
        negative_ |= x < 0;
        odd_ ^= std::signbit(x);
        only_minus_zeros_ &= x == 0 && std::signbit(x);
        sum_ += static_cast<long double>(x);
        magnitude_ += std::fabs(static_cast<long double>(x));
        product_ *= static_cast<long double>(x);
        if (x != 0 && std::isfinite(x)) exponents_ += std::fabs(std::log2(std::fabs(static_cast<long double>(x))));
    }
}

template <class T>
std::string Fold<T>::float_sum_fault(T got) const {
    constexpr long double most = std::numeric_limits<T>::max(), unit = std::numeric_limits<T>::epsilon();
    if (nan_ || (infinity_ && minus_infinity_)) return std::isnan(got) ? "" : fmt::format("{} instead of NaN", got);
    if (!infinity_ && !minus_infinity_ && magnitude_ > most && positive_ && negative_) return "";
    if (infinity_ || minus_infinity_) return static_cast<long double>(got) == sum_ ? "" : fmt::format("{} instead of {}", got, static_cast<double>(sum_));
    if (only_minus_zeros_ && count_ && !std::signbit(got)) return "the sum of negative zeros is not one";
    const long double wanted = std::fabs(sum_) > most ? std::copysign(std::numeric_limits<long double>::infinity(), sum_) : sum_;
    return near(got, wanted, 16 * unit * magnitude_) ? "" : fmt::format("{} instead of {}", got, static_cast<double>(wanted));
}

template <class T>
std::string Fold<T>::float_product_fault(T got) const {
    const bool infinite = infinity_ || minus_infinity_;
    if (nan_ || (infinite && zero_)) return std::isnan(got) ? "" : fmt::format("{} instead of NaN", got);
    if (zero_ && std::isnan(got)) return exponents_ < std::numeric_limits<T>::max_exponent ? "NaN instead of 0" : "";
    if (!std::isnan(got) && std::signbit(got) != odd_ && count_) return fmt::format("{} has the wrong sign", got);
    if (exponents_ > std::numeric_limits<T>::max_exponent - 4) return "";  // one order overflows or underflows, another does not
    const long double tolerance = std::fabs(product_) * static_cast<long double>(count_) * static_cast<long double>(std::numeric_limits<T>::epsilon());
    return near(got, product_, infinite ? 0 : tolerance) || static_cast<long double>(got) == product_ ? "" : fmt::format("{} instead of {}", got, static_cast<double>(product_));
}

template <class T>
std::string Fold<T>::fault(T got) const {
    const auto exactly = [&](T wanted) { return got == wanted ? std::string() : fmt::format("{} instead of {}", got, wanted); };
    using Limits = std::numeric_limits<T>;
    switch (monoid_) {
        case Monoid::Sum:
            if constexpr (std::is_floating_point_v<T>) return float_sum_fault(got);
            return exactly(static_cast<T>(whole_sum_));
        case Monoid::Prod:
            if constexpr (std::is_floating_point_v<T>) return float_product_fault(got);
            return exactly(static_cast<T>(whole_product_));
        case Monoid::Max:
            if (nan_) return got != got ? "" : fmt::format("{} instead of NaN", got);
            return exactly(count_ ? most_ : Limits::has_infinity ? -Limits::infinity() : Limits::min());
        case Monoid::Min:
            if (nan_) return got != got ? "" : fmt::format("{} instead of NaN", got);
            return exactly(count_ ? least_ : Limits::has_infinity ? Limits::infinity() : Limits::max());
        case Monoid::Any: return exactly(T(any_));
        case Monoid::All: return exactly(T(all_));
        default: return "no reference for this monoid";
    }
}
template class Fold<float>;
template class Fold<double>;
template class Fold<int32_t>;
template class Fold<int64_t>;

}  // namespace acu
