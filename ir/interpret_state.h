#pragma once
#include <condition_variable>
#include <list>
#include <mutex>
#include <random>

#include "ir/interpret.h"

namespace acu::ir {

/// Where in the parallel loops and roles something runs: a chain of (loop instance, iteration). Two iterations of one instance have no order.
struct Concurrency {
    int parent;
    int64_t instance, iteration;
};

/// The cells of one buffer, or of one version of a ring. `written`: the block execution that wrote a cell last, 0: never. `writer`, `reader`: where in the
/// parallel loops that happened, an index into the run's table; `many`: several have read since it was written.
struct Cells {
    std::vector<int64_t> origin, sizes;
    Array* array = nullptr;
    Array own;
    std::vector<int64_t> written;
    std::vector<int> writer, reader;
    std::vector<char> many;
};

using Key = std::vector<int64_t>;

/// A buffer while it is alive.
struct Buffer {
    const Decl* decl = nullptr;
    Cells plain;
    std::list<std::pair<Key, Cells>> versions;     ///< of a ring, the oldest first (a list: cells point into themselves)
    std::vector<Key> order;                        ///< every item that was acquired
    std::set<Key> committed;
    std::map<Key, int64_t> released;
};
using BufferPointer = std::shared_ptr<Buffer>;

/// What all roles of a run share. Roles are threads that hand one baton around, in an order that the seed decides: only one runs at a time.
struct Run {
    std::vector<Concurrency> places;
    std::map<std::string, int64_t> turns;
    int64_t serial = 1;       ///< of block executions and loop instances
    std::mt19937_64 random;
    bool shuffled = false;
    bool races = true;

    int place(int parent, int64_t instance, int64_t iteration) {
        places.push_back({parent, instance, iteration});
        return static_cast<int>(places.size()) - 1;
    }
    /// Do two places have no order, so that they must not meet in a cell?
    bool unordered(int a, int b) const;
};

/// Thrown inside the interpreter only; `interpret` answers the diagnostic.
struct Fault {
    Diagnostic why;
};

/// Runs functions as coroutines: one at a time, switching where `wait` says that one cannot go on.
class Coroutines {
  public:
    explicit Coroutines(Run& run) : run_(run) {}
    /// Runs all to their end. Throws what the first of them threw, or `run.D7` where none can go on.
    void run(std::vector<std::function<void(Coroutines&, size_t)>> bodies);
    /// Called by body `me`: gives the others a chance until `ready` holds.
    void wait(size_t me, const std::function<bool()>& ready);

  private:
    void choose();

    Run& run_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::function<bool()>> waiting_;    ///< empty: can go on
    std::vector<char> done_;
    size_t current_ = 0;
    bool stuck_ = false;
    std::exception_ptr failed_;
};

}  // namespace acu::ir
