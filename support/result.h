#pragma once
#include <utility>
#include <variant>

#include "support/diagnostic.h"

namespace acu {

/// A value or the one diagnostic that says why there is none.
template <class T>
class [[nodiscard]] Result {
  public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Diagnostic why) : state_(std::in_place_index<1>, std::move(why)) {}
    explicit operator bool() const { return state_.index() == 0; }
    const T& operator*() const& { return std::get<0>(state_); }
    T& operator*() & { return std::get<0>(state_); }
    T&& operator*() && { return std::get<0>(std::move(state_)); }
    const T* operator->() const { return &std::get<0>(state_); }
    T* operator->() { return &std::get<0>(state_); }
    const Diagnostic& why() const { return std::get<1>(state_); }

  private:
    std::variant<T, Diagnostic> state_;
};

/// Success or the diagnostic.
using Status = Result<std::monostate>;
inline Status ok() { return std::monostate{}; }

}  // namespace acu
