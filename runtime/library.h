#pragma once
#include <string>
#include <vector>

#include "support/result.h"

namespace acu::runtime {

/// A shared library that was opened at run time. It is never unloaded: drivers and compilers leave threads and exit handlers behind.
class Library {
  public:
    /// Opens `name`, a path or a name that the loader searches. Code `library.missing`: the loader's own words.
    static Result<Library> open(const std::string& name);

    /// The first of `names` that opens; the diagnostic is the one of the first name.
    static Result<Library> open_first(const std::vector<std::string>& names);

    Library(Library&& other) noexcept;
    Library& operator=(Library&& other) noexcept;
    ~Library();

    const std::string& name() const { return name_; }
    void* find(const char* symbol) const;  ///< null when the library has no such symbol

    /// Fills the function pointer `slot`. False when the symbol is missing.
    template <class F>
    bool bind(F*& slot, const char* symbol) const {
        slot = reinterpret_cast<F*>(find(symbol));
        return slot != nullptr;
    }

  private:
    Library(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
    void* handle_ = nullptr;
    std::string name_;
};

/// Binds a list of functions and remembers the first one that the library lacks.
class Binder {
  public:
    explicit Binder(const Library& library) : library_(library) {}
    template <class F>
    Binder& bind(F*& slot, const char* symbol) {
        if (!library_.bind(slot, symbol) && missing_.empty()) missing_ = symbol;
        return *this;
    }
    /// Code `library.old` when a function was missing.
    Status status() const;

  private:
    const Library& library_;
    std::string missing_;
};

}  // namespace acu::runtime
