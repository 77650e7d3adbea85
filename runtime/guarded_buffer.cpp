#include "runtime/guarded_buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace acu::runtime {

namespace {

constexpr size_t alignment = 256;
constexpr size_t overhead = 2 * guard_bytes + alignment;

using ByteAt = std::byte (*)(size_t);

std::vector<std::byte> pattern(ByteAt byte_at, size_t bytes) {
    std::vector<std::byte> out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = byte_at(i);
    return out;
}

class GuardedBuffer : public Buffer {
  public:
    GuardedBuffer(std::shared_ptr<Driver> driver, uint64_t base, size_t bytes)
        : driver_(std::move(driver)), base_(base), address_((base + guard_bytes + alignment - 1) / alignment * alignment), bytes_(bytes) {}
    ~GuardedBuffer() override {
        driver_->make_current();
        if (driver_->release(base_) != 0) driver_->clear_error();
    }

    uint64_t address() const override { return address_; }
    size_t bytes() const override { return bytes_; }

    Status upload(std::span<const std::byte> data) override {
        if (data.size() > bytes_) return too_long(data.size());
        return call("copying to the device", [&] { return data.empty() ? 0 : driver_->copy_in(address_, data.data(), data.size()); });
    }

    Status download(std::span<std::byte> data) const override {
        if (data.size() > bytes_) return too_long(data.size());
        return call("copying from the device", [&] { return data.empty() ? 0 : driver_->copy_out(data.data(), address_, data.size()); });
    }

    Status check_guards(const std::string& name) const override {
        if (Status before = check_zone(address_ - guard_bytes, name, true); !before) return before;
        return check_zone(address_ + bytes_, name, false);
    }

    /// Writes both guard zones and the poison.
    Status fill() {
        const std::vector<std::byte> guard = pattern(guard_byte, guard_bytes);
        return call("filling new memory", [&] {
            int error = driver_->copy_in(address_ - guard_bytes, guard.data(), guard.size());
            if (!error) error = driver_->copy_in(address_ + bytes_, guard.data(), guard.size());
            return error ? error : poison();
        });
    }

  private:
    /// The pattern repeats every 256 bytes, so what is written can be copied behind itself, twice as much each time.
    int poison() {
        const std::vector<std::byte> first = pattern(poison_byte, std::min(bytes_, size_t{1} << 16));
        int error = first.empty() ? 0 : driver_->copy_in(address_, first.data(), first.size());
        for (size_t filled = first.size(); filled < bytes_ && !error; filled *= 2)
            error = driver_->copy_within(address_ + filled, address_, std::min(filled, bytes_ - filled));
        return error;
    }

    Status check_zone(uint64_t address, const std::string& name, bool before) const {
        std::vector<std::byte> zone(guard_bytes);
        Status read = call("reading a guard zone", [&] { return driver_->copy_out(zone.data(), address, zone.size()); });
        if (!read) return read;
        std::vector<size_t> changed;
        for (size_t i = 0; i < zone.size(); ++i)
            if (zone[i] != guard_byte(i)) changed.push_back(i);
        return changed.empty() ? ok() : Status(overrun(changed, zone, name, before));
    }

    /// Offsets count from the buffer's start, so that those before it are negative.
    Diagnostic overrun(const std::vector<size_t>& changed, const std::vector<std::byte>& zone, const std::string& name, bool before) const {
        const size_t first = changed.front();
        const std::string offset = before ? fmt::format("-{}", guard_bytes - first) : fmt::format("{}", bytes_ + first);
        return {.code = "device.guard",
                .message = fmt::format("memory {} `{}` was written: {} bytes changed, the first at offset {} (now 0x{:02x})",
                                       before ? "before" : "behind", name, changed.size(), offset, std::to_integer<int>(zone[first])),
                .help = fmt::format("`{}` has {} bytes; a kernel computes an address outside of it", name, bytes_),
                .exit = Exit::Wrong};
    }

    Diagnostic too_long(size_t size) const {
        return {
            .code = "device.memory", .message = fmt::format("{} bytes do not fit a buffer of {} bytes", size, bytes_), .exit = Exit::Wrong};
    }

    template <class F>
    Status call(const char* what, F function) const {
        int error = driver_->make_current();
        if (!error) error = function();
        return error ? Status(driver_failed(*driver_, error, "device.failed", what)) : ok();
    }

    std::shared_ptr<Driver> driver_;
    uint64_t base_;
    uint64_t address_;
    size_t bytes_;
};

Diagnostic no_memory(size_t bytes, const std::string& why) {
    return {.code = "device.memory",
            .message = fmt::format("cannot allocate {} bytes of device memory: {}", bytes, why),
            .help = "choose smaller sizes, or end other programs that use this GPU",
            .exit = Exit::Lacking};
}

}  // namespace

Result<std::unique_ptr<Buffer>> allocate_guarded(std::shared_ptr<Driver> driver, size_t bytes) {
    if (bytes > std::numeric_limits<size_t>::max() - overhead) return no_memory(bytes, "no device has that much");
    uint64_t base = 0;
    int error = driver->make_current();
    if (!error) error = driver->allocate(base, bytes + overhead);
    if (error) {
        const std::string why = driver->explain(error);
        driver->clear_error();
        return no_memory(bytes, why);
    }
    auto buffer = std::make_unique<GuardedBuffer>(std::move(driver), base, bytes);
    if (Status filled = buffer->fill(); !filled) return filled.why();
    return std::unique_ptr<Buffer>(std::move(buffer));
}

}  // namespace acu::runtime
