#include "ir/interpret_state.h"

#include <thread>

namespace acu::ir {

bool Run::unordered(int a, int b) const {
    std::vector<int> x, y;
    for (int i = a; i >= 0; i = places[static_cast<size_t>(i)].parent) x.push_back(i);
    for (int i = b; i >= 0; i = places[static_cast<size_t>(i)].parent) y.push_back(i);
    for (size_t k = 0; k < std::min(x.size(), y.size()); ++k) {
        const Concurrency &p = places[static_cast<size_t>(x[x.size() - 1 - k])], &q = places[static_cast<size_t>(y[y.size() - 1 - k])];
        if (p.instance != q.instance) return false;
        if (p.iteration != q.iteration) return true;
    }
    return false;
}

/// Thrown through a role that must end because another one failed.
struct Cancelled {};

void Coroutines::choose() {
    std::vector<size_t> ready, live;
    for (size_t i = 0; i < done_.size(); ++i) {
        if (done_[i]) continue;
        live.push_back(i);
        if (!waiting_[i] || waiting_[i]()) ready.push_back(i);
    }
    stuck_ |= ready.empty() && !live.empty();
    const std::vector<size_t>& from = ready.empty() ? live : ready;
    if (!from.empty()) current_ = from[run_.shuffled ? run_.random() % from.size() : 0];
    changed_.notify_all();
}

void Coroutines::wait(size_t me, const std::function<bool()>& ready) {
    if (ready() && !run_.shuffled) return;
    std::unique_lock lock(mutex_);
    waiting_[me] = ready;
    choose();
    changed_.wait(lock, [&] { return current_ == me; });
    waiting_[me] = nullptr;
    if (failed_) throw Cancelled{};
    if (stuck_) throw Fault{{"run.D7", {}, "no role can go on: each waits for another"}};
}

void Coroutines::run(std::vector<std::function<void(Coroutines&, size_t)>> bodies) {
    waiting_.assign(bodies.size(), nullptr);
    done_.assign(bodies.size(), 0);
    const auto one = [&](size_t me) {
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return current_ == me; });
        }
        try {
            if (!failed_) bodies[me](*this, me);
        } catch (const Cancelled&) {
        } catch (...) {
            if (!failed_) failed_ = std::current_exception();
        }
        const std::lock_guard lock(mutex_);
        done_[me] = 1;
        choose();
    };
    std::vector<std::thread> threads;
    for (size_t i = 0; i < bodies.size(); ++i) threads.emplace_back(one, i);
    for (std::thread& t : threads) t.join();
    if (failed_) std::rethrow_exception(failed_);
}

}  // namespace acu::ir
