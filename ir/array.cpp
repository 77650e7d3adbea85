#include <algorithm>
#include <new>

#include "ir/interpret.h"
#include "ir/scalar.h"

namespace acu::ir {

int64_t Array::count() const {
    int64_t n = 1;
    for (const int64_t s : sizes)
        if (s == 0) return 0;
    for (const int64_t s : sizes)
        if (__builtin_mul_overflow(n, s, &n)) throw std::bad_alloc();
    return n;
}

Array Array::zeros(DType type, std::vector<int64_t> sizes) {
    Array a{type, std::move(sizes), {}};
    const int64_t count = a.count();
    if (count > (int64_t{1} << 56)) throw std::bad_alloc();
    a.bytes.resize(static_cast<size_t>(count) * info(type).bytes);
    return a;
}

double Array::get(int64_t i) const { return is_float(type) ? load_float(bytes.data(), i, type) : static_cast<double>(load_int(bytes.data(), i, type)); }

void Array::set(int64_t i, double x) {
    if (is_float(type)) store_float(bytes.data(), i, type, x);
    else store_int(bytes.data(), i, type, saturate(x, type));
}

std::vector<int64_t> sizes_of(const Decl& d, const Env& dims) {
    std::vector<int64_t> out;
    for (const Window& w : d.dims) out.push_back(std::max<int64_t>(0, evaluate(w.size, dims)));
    return out;
}

}  // namespace acu::ir
