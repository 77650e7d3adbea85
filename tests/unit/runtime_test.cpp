#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/child_compiler.h"
#include "runtime/compile.h"
#include "runtime/device.h"
#include "runtime/driver_device.h"
#include "runtime/guarded_buffer.h"
#include "runtime/library.h"
#include "runtime/nvrtc.h"
#include "runtime/process.h"
#include "runtime/toolkit.h"

namespace fs = std::filesystem;
using namespace acu;
using namespace acu::runtime;

namespace {

/// A folder for a test, removed at its end.
struct Folder {
    Folder() {
        std::string name = (fs::temp_directory_path() / "acu-test-XXXXXX").string();
        REQUIRE(mkdtemp(name.data()));
        path = name;
    }
    ~Folder() { fs::remove_all(path); }
    void file(const std::string& name, const std::string& text = "", bool program = false) const {
        fs::create_directories((path / name).parent_path());
        std::ofstream(path / name) << text;
        if (program) fs::permissions(path / name, fs::perms::owner_all);
    }
    fs::path path;
};

/// Sets environment variables and puts the old values back.
struct Variable {
    Variable(const char* name, const std::string& value) : name(name) {
        if (const char* old = std::getenv(name)) before = old, had = true;
        setenv(name, value.c_str(), 1);
    }
    ~Variable() { had ? setenv(name, before.c_str(), 1) : unsetenv(name); }
    const char* name;
    std::string before;
    bool had = false;
};

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const ToolkitFound* at(const std::vector<ToolkitFound>& found, const std::string& path) {
    for (const ToolkitFound& f : found)
        if (f.path == path) return &f;
    return nullptr;
}

const char* const kernel_source = R"(
extern "C" __global__ void add(float* x, float by, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
})";

}  // namespace

TEST_CASE("a device name is parsed") {
    CHECK(parse_device("cuda:0")->kind == DeviceId::Kind::Cuda);
    CHECK(parse_device("hip:12")->kind == DeviceId::Kind::Hip);
    CHECK(parse_device("hip:12")->ordinal == 12);
    for (const char* bad :
         {"", "cuda", "cuda:", "cuda:-1", "cuda:x", "cuda:1x", "cuda:99999", "CUDA:0", "gpu:0", "cpu", "cuda:0:1", "cuda: 1"}) {
        const auto parsed = parse_device(bad);
        REQUIRE_MESSAGE(!parsed, bad);
        CHECK(parsed.why().code == "device.unknown");
        CHECK(parsed.why().exit == Exit::Usage);
        CHECK(!parsed.why().help.empty());
    }
    CHECK(contains(parse_device("cude:0").why().help, "cuda:0"));
}

TEST_CASE("a child process: output, exit, folder, signal, failure") {
    const Folder folder;
    const ProcessResult good = run_process({.arguments = {"sh", "-c", "echo out; echo err >&2; pwd; cat"}, .folder = folder.path.string()});
    CHECK(good.good());
    CHECK(good.output == "out\nerr\n" + fs::canonical(folder.path).string() + "\n");
    const ProcessResult bad = run_process({.arguments = {"sh", "-c", "exit 7"}, .folder = {}});
    CHECK(bad.exit_code == 7);
    CHECK(bad.explain() == "exited with 7");
    const ProcessResult killed = run_process({.arguments = {"sh", "-c", "kill -SEGV $$"}, .folder = {}});
    CHECK(killed.signal == 11);
    CHECK(!killed.good());
    const ProcessResult missing = run_process({.arguments = {"/no/such/program"}, .folder = {}});
    CHECK(contains(missing.explain(), "did not start"));
    const ProcessResult literal = run_process({.arguments = {"echo", "$HOME; ls `x`"}, .folder = {}});
    CHECK(literal.output == "$HOME; ls `x`\n");
    const Variable outer("ACU_TEST_B", "outer");
    CHECK(run_process({.arguments = {"sh", "-c", "echo $ACU_TEST_A $ACU_TEST_B"}, .folder = {}, .variables = {"ACU_TEST_A=a"}}).output ==
          "a outer\n");
    CHECK(run_process({.arguments = {"sh", "-c", "echo $ACU_TEST_B"}, .folder = {}, .variables = {"ACU_TEST_B=b"}}).output == "b\n");
    CHECK(!run_process({}).failure.empty());
}

TEST_CASE("a child process: the time limit ends it and its children, and output is bounded") {
    using namespace std::chrono;
    const auto seconds_of = [](const ProcessRequest& request, ProcessResult& result) {
        const auto start = steady_clock::now();
        result = run_process(request);
        return duration<double>(steady_clock::now() - start).count();
    };
    ProcessResult result;
    CHECK(seconds_of({.arguments = {"sh", "-c", "echo begun; sleep 30"}, .folder = {}, .limit = milliseconds(200)}, result) < 5);
    CHECK(result.timed_out);
    CHECK(result.output == "begun\n");
    CHECK(seconds_of({.arguments = {"yes"}, .folder = {}, .limit = milliseconds(200), .output_limit = 1000}, result) < 5);
    CHECK(result.timed_out);
    CHECK(result.output.size() == 1000);
    CHECK(seconds_of({.arguments = {"sh", "-c", "sleep 30 & echo done"}, .folder = {}, .limit = seconds(20)}, result) < 5);
    CHECK(result.good());
    CHECK(result.output == "done\n");
}

TEST_CASE("toolkits are found in a folder tree") {
    const Folder folder;
    folder.file("cuda/lib64/libnvrtc.so.12");
    folder.file("cuda/lib64/libnvrtc-builtins.so.12.4");
    folder.file("cuda/lib64/libnvrtc.alt.so.12");
    folder.file("cuda/bin/nvcc", "#!/bin/sh\necho Cuda compilation tools, release 12.4, V12.4.131\n", true);
    folder.file("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13");
    folder.file("venv/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc-builtins.so.13.0");
    folder.file("venv/lib/python3.11/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.11.2");
    folder.file("rocm/lib/libhiprtc.so.6.1.40091");
    folder.file("rocm/lib/libamdhip64.so.6");
    const Variable environment("VIRTUAL_ENV", (folder.path / "venv").string());
    const Variable home("ROCM_PATH", (folder.path / "rocm").string());
    const Variable nowhere("CUDA_HOME", (folder.path / "absent").string());
    const ToolkitOptions options{(folder.path / "cuda").string(), ""};
    const auto found = find_toolkits(options);
    const std::string root = fs::canonical(folder.path).string();
    REQUIRE(found.size() >= 5);
    CHECK(found[0].path == root + "/cuda/lib64/libnvrtc.so.12");
    CHECK(describe(found[0]) == "nvrtc 12.4");
    CHECK(found[0].origin == "--cuda-path");
    CHECK(describe(found[1]) == "nvcc 12.4");
    const std::string packages = root + "/venv/lib/python3.11/site-packages/nvidia/";
    REQUIRE(at(found, packages + "cu13/lib/libnvrtc.so.13"));
    CHECK(at(found, packages + "cu13/lib/libnvrtc.so.13")->version == "13.0");
    REQUIRE(at(found, packages + "cuda_nvrtc/lib/libnvrtc.so.11.2"));
    REQUIRE(at(found, root + "/rocm/lib/libhiprtc.so.6.1.40091"));
    CHECK(describe(*at(found, root + "/rocm/lib/libhiprtc.so.6.1.40091")) == "hiprtc 6.1");
    CHECK(!at(found, root + "/rocm/lib/libamdhip64.so.6"));
    CHECK(hip_driver_libraries({"", (folder.path / "rocm").string()}).front() == root + "/rocm/lib/libamdhip64.so.6");
    std::string looked;
    for (const std::string& place : search_toolkits(DeviceId::Kind::Cuda, options).looked) looked += place + "\n";
    CHECK(contains(looked, "absent (CUDA_HOME), which is no folder"));
}

TEST_CASE("what builds what") {
    const ToolkitFound cuda13{ToolkitKind::Nvrtc, "13.0", "", ""}, cuda12{ToolkitKind::Nvcc, "12.9", "", ""},
        cuda11{ToolkitKind::Nvrtc, "11.8", "", ""};
    const ToolkitFound hip52{ToolkitKind::Hiprtc, "5.2", "", ""}, unknown{ToolkitKind::Nvrtc, "", "", ""},
        major12{ToolkitKind::Nvrtc, "12", "", ""};
    CHECK(!builds(cuda13, "sm_70"));
    CHECK(builds(cuda12, "sm_70"));
    CHECK(builds(cuda13, "sm_80"));
    CHECK(builds(cuda13, "sm_90a"));
    CHECK(!builds(cuda11, "sm_90a"));
    CHECK(builds(major12, "sm_100"));
    CHECK(!builds({ToolkitKind::Nvrtc, "12.4", "", ""}, "sm_100"));
    CHECK(builds(unknown, "sm_70"));
    CHECK(!builds(cuda13, "gfx90a"));
    CHECK(!builds(hip52, "sm_80"));
    CHECK(builds(hip52, "gfx90a"));
    CHECK(!builds(hip52, "gfx942"));
}

TEST_CASE("toolkits are chosen, or the reason says what to install") {
    const ToolkitFound nvcc13{ToolkitKind::Nvcc, "13.0", "/a", ""}, nvrtc13{ToolkitKind::Nvrtc, "13.0", "/b", ""},
        nvrtc12{ToolkitKind::Nvrtc, "12.9", "/c", ""};
    const auto order = choose_toolkits({{nvcc13, nvrtc13, nvrtc12}, {}}, "sm_90a");
    REQUIRE(order);
    CHECK((*order)[0].path == "/b");
    CHECK((*order)[2].path == "/a");
    CHECK((*choose_toolkits({{nvcc13, nvrtc13, nvrtc12}, {}}, "sm_90a", 12))[0].path == "/c");
    CHECK(choose_toolkits({{nvcc13, nvrtc13, nvrtc12}, {}}, "sm_70")->size() == 1);

    const auto too_new = choose_toolkits({{nvcc13, nvrtc13}, {}}, "sm_70");
    REQUIRE(!too_new);
    CHECK(too_new.why().code == "toolkit.target");
    CHECK(too_new.why().exit == Exit::Lacking);
    CHECK(too_new.why().help == "sm_70 needs a CUDA 12 toolkit: pip install nvidia-cuda-nvrtc-cu12");

    const auto nothing = choose_toolkits({{}, {"CUDA_HOME (not set)"}}, "sm_90a");
    REQUIRE(!nothing);
    CHECK(nothing.why().code == "toolkit.missing");
    CHECK(nothing.why().exit == Exit::Lacking);
    CHECK(contains(nothing.why().help, "--cuda-path"));
    CHECK(nothing.why().notes.at(0).text == "looked at CUDA_HOME (not set)");
    CHECK(contains(choose_toolkits({}, "gfx90a").why().help, "--rocm-path"));
}

TEST_CASE("a library that is not there, or lacks a function") {
    CHECK(Library::open("libacu-nothing.so").why().code == "library.missing");
    CHECK(contains(Library::open_first({"libacu-a.so", "libacu-b.so"}).why().message, "libacu-a.so"));
    const auto c = Library::open_first({"libacu-a.so", "libc.so.6"});
    REQUIRE(c);
    int (*absent)() = nullptr;
    Binder binder(*c);
    CHECK(contains(binder.bind(absent, "acu_absent").status().why().message, "acu_absent"));
}

TEST_CASE("the program of a toolkit compiles in a child process") {
    const Folder folder;
    folder.file("nvcc", "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\ncat \"$3\" > \"$2\"; echo name \"$3\" >> \"$2\"\n", true);
    folder.file("bad", "#!/bin/sh\necho 'kernel.cu(1): error: no'; exit 2\n", true);
    folder.file("slow", "#!/bin/sh\nsleep 60\n", true);
    const Variable temporary("TMPDIR", folder.path.string());
    const auto found = [&](const char* program) { return ToolkitFound{ToolkitKind::Nvcc, "12.4", (folder.path / program).string(), ""}; };
    const auto good = compile_in_child(found("nvcc"), "text\n", "sm_80", "../x/-softmax.cu");
    REQUIRE(good);
    CHECK(std::string(good->begin(), good->end()) == "text\nname kernel.cu\n");
    const auto bad = compile_in_child(found("bad"), "text\n", "sm_80", "softmax.cu");
    REQUIRE(!bad);
    CHECK(bad.why().code == "compile.failed");
    CHECK(contains(bad.why().notes.at(1).text, "error: no"));
    CHECK(compile_in_child(found("slow"), "", "sm_80", "a", std::chrono::seconds(1)).why().code == "compile.time");
    CHECK(compile_in_child(found("absent"), "", "sm_80", "a").why().code == "toolkit.broken");
    size_t entries = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder.path)) ++entries;
    CHECK(entries == 3);  // the temporary folders are gone
}

TEST_CASE("NVRTC compiles to a cubin, and its log comes back") {
    int tried = 0;
    for (const ToolkitFound& found : search_toolkits(DeviceId::Kind::Cuda, {}).found)
        for (const std::string arch : {"sm_70", "sm_80", "sm_90a"}) {
            if (found.kind != ToolkitKind::Nvrtc || !builds(found, arch)) continue;
            CAPTURE(found.path);
            CAPTURE(arch);
            const auto cubin = compile_cubin(found, kernel_source, arch, "add.cu");
            if (!cubin && cubin.why().code == "toolkit.broken") continue;
            REQUIRE(cubin);
            CHECK(std::memcmp(cubin->data(), "\177ELF", 4) == 0);
            const auto bad = compile_cubin(found, "extern \"C\" __global__ void f() { nonsense; }", arch, "bad.cu");
            REQUIRE(!bad);
            CHECK(bad.why().code == "compile.failed");
            CHECK(bad.why().exit == Exit::Wrong);
            std::string log;
            for (const Note& note : bad.why().notes) log += note.text + "\n";
            CHECK(contains(log, "bad.cu(1)"));
            ++tried;
        }
    if (tried == 0) MESSAGE("skipped: no NVRTC here; pip install nvidia-cuda-nvrtc");
}

TEST_CASE("HIP source compiles for gfx90a") {
    const auto toolkits = toolkits_for("gfx90a", {});
    if (!toolkits) {
        MESSAGE("skipped: " << toolkits.why().message << "; " << toolkits.why().help);
        return;
    }
    for (const ToolkitFound& found : *toolkits) {
        CAPTURE(found.path);
        const auto code = compile_with({found}, {kernel_source, "add.hip", "gfx90a"});
        if (!code && code.why().code == "toolkit.broken") continue;
        REQUIRE(code);
        CHECK(!code->code.empty());
        CHECK(compile_with({found}, {"extern \"C\" __global__ void f() { nonsense; }", "bad.hip", "gfx90a"}).why().code ==
              "compile.failed");
    }
}

TEST_CASE("a broken toolkit gives way to the next") {
    const Folder folder;
    folder.file("libnvrtc.so.12", "not a library");
    folder.file("nvcc", "#!/bin/sh\nwhile [ \"$1\" != -o ]; do shift; done\ncat \"$3\" > \"$2\"\n", true);
    const ToolkitFound broken{ToolkitKind::Nvrtc, "12.4", (folder.path / "libnvrtc.so.12").string(), ""};
    const ToolkitFound works{ToolkitKind::Nvcc, "12.4", (folder.path / "nvcc").string(), ""};
    const auto compiled = compile_with({broken, works}, {"text", "a.cu", "sm_80"});
    REQUIRE(compiled);
    CHECK(compiled->toolchain == "nvcc 12.4");
    const auto none = compile_with({broken}, {"text", "a.cu", "sm_80"});
    CHECK(none.why().code == "toolkit.broken");
    CHECK(none.why().exit == Exit::Lacking);
}

namespace {

/// A driver whose device memory is ours. A launch runs `kernel`; numbers above 0 are errors, of which 700 loses the device.
class FakeDriver : public Driver {
  public:
    std::string name() const override { return "fake"; }
    std::string architecture() const override { return "sm_80"; }
    int toolkit_major() const override { return 0; }
    int make_current() override { return 0; }
    int allocate(uint64_t& address, size_t bytes) override {
        if (bytes > (size_t{1} << 30)) return remembered = 2;
        ++live;
        address = reinterpret_cast<uint64_t>(std::malloc(bytes));
        return 0;
    }
    int release(uint64_t address) override {
        --live;
        std::free(reinterpret_cast<void*>(address));
        return 0;
    }
    int copy_in(uint64_t to, const void* from, size_t bytes) override { return copy(reinterpret_cast<void*>(to), from, bytes); }
    int copy_out(void* to, uint64_t from, size_t bytes) override { return copy(to, reinterpret_cast<void*>(from), bytes); }
    int copy_within(uint64_t to, uint64_t from, size_t bytes) override {
        return copy(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    }
    int load_module(Handle& module, const void* code) override { return module = const_cast<void*>(code), ++live, 0; }
    int unload_module(Handle) override { return --live, 0; }
    int find_kernel(Handle& kernel, Handle, const char* name) override {
        return kernel = this, std::string(name) == "add" ? 0 : remembered = 500;
    }
    int launch(Handle, const LaunchShape& shape, void** arguments) override {
        if (shape.block > 1024) return remembered = 1;
        int64_t n = 0;
        float by = 0;
        float* x = nullptr;
        std::memcpy(&x, arguments[0], 8), std::memcpy(&by, arguments[1], 4), std::memcpy(&n, arguments[2], 8);
        for (int64_t i = 0; i < n; ++i) x[i] += by;
        return ++launches, 0;
    }
    int synchronize() override { return broken ? 700 : 0; }
    int create_event(Handle& event) override { return ++live, event = this, 0; }
    int destroy_event(Handle) override { return --live, 0; }
    int record(Handle) override { return 0; }
    int elapsed(float& milliseconds, Handle, Handle) override { return milliseconds = static_cast<float>(launches), 0; }
    std::string explain(int error) const override { return "error " + std::to_string(error); }
    bool lost(int error) const override { return error == 700; }
    void clear_error() override { remembered = 0; }

    int live = 0;
    int launches = 0;
    int remembered = 0;
    bool broken = false;

  private:
    int copy(void* to, const void* from, size_t bytes) { return std::memcpy(to, from, bytes), 0; }
};

KernelArgument argument(const void* value, size_t bytes) {
    const auto* first = static_cast<const std::byte*>(value);
    return {{first, first + bytes}};
}

Launch add_launch(const Buffer& x, int64_t offset, int64_t n) {
    const uint64_t address = x.address() + static_cast<uint64_t>(offset * 4);
    const float by = 1;
    return {"add", static_cast<uint32_t>((n + 255) / 256), 256, {argument(&address, 8), argument(&by, 4), argument(&n, 8)}};
}

/// What every device must do, real or not.
void exercise(Device& device) {
    auto module = device.load(kernel_source, "add.cu");
    REQUIRE(module);
    CHECK(!device.toolchain().empty());
    const std::vector<float> ones(1000, 1.0F);
    auto x = device.allocate(4000);
    REQUIRE(x);
    REQUIRE((*x)->upload(std::as_bytes(std::span(ones))));
    REQUIRE(device.launch(**module, add_launch(**x, 0, 1000)));
    REQUIRE(device.synchronize());
    std::vector<float> got(1000);
    REQUIRE((*x)->download(std::as_writable_bytes(std::span(got))));
    CHECK(got == std::vector<float>(1000, 2.0F));
    CHECK((*x)->check_guards("x"));

    Launch wide = add_launch(**x, 0, 1000);
    wide.block = 4096;
    CHECK(device.launch(**module, wide).why().code == "device.launch");
    Launch unknown = add_launch(**x, 0, 1000);
    unknown.kernel = "subtract";
    CHECK(contains(device.launch(**module, unknown).why().message, "`subtract`"));
    unknown.kernel = "add";
    unknown.grid = 0;
    CHECK(device.launch(**module, unknown).why().code == "device.launch");
    CHECK(device.launch(**module, add_launch(**x, 0, 1000)));  // refused launches leave nothing behind
    CHECK(device.synchronize());

    const auto seconds = device.time({add_launch(**x, 0, 1000), add_launch(**x, 0, 1000)}, **module, 10);
    REQUIRE(seconds);
    CHECK(*seconds > 0);

    REQUIRE(device.launch(**module, add_launch(**x, 1, 1000)));
    REQUIRE(device.synchronize());
    const Status behind = (*x)->check_guards("x");
    REQUIRE(!behind);
    CHECK(behind.why().code == "device.guard");
    CHECK(behind.why().exit == Exit::Wrong);
    CHECK(contains(behind.why().message, "behind `x`"));
    auto y = device.allocate(64);
    REQUIRE(y);
    REQUIRE(device.launch(**module, add_launch(**y, -2, 2)));
    const Status before = (*y)->check_guards("y");
    REQUIRE(!before);
    CHECK(contains(before.why().message, "before `y`"));
}

void check_buffers(Device& device) {
    for (const size_t bytes : {size_t{0}, size_t{1}, size_t{255}, size_t{65536}, size_t{1000003}}) {
        CAPTURE(bytes);
        auto buffer = device.allocate(bytes);
        REQUIRE(buffer);
        CHECK((*buffer)->address() % 256 == 0);
        CHECK((*buffer)->bytes() == bytes);
        CHECK((*buffer)->check_guards("b"));
        std::vector<std::byte> got(bytes);
        REQUIRE((*buffer)->download(got));
        size_t wrong = 0;
        for (size_t i = 0; i < bytes; ++i) wrong += got[i] != poison_byte(i);
        CHECK(wrong == 0);
        got.resize(bytes + 1);
        CHECK((*buffer)->upload(got).why().code == "device.memory");
        CHECK((*buffer)->download(got).why().code == "device.memory");
    }
    CHECK(device.allocate(size_t{1} << 50).why().code == "device.memory");
    CHECK(device.allocate(~size_t{0}).why().code == "device.memory");
    CHECK(device.allocate(16));
}

}  // namespace

TEST_CASE("a device over a fake driver: memory, guard zones, launches, clock, errors") {
    const auto driver = std::make_shared<FakeDriver>();
    {
        auto device = make_device(driver, {});
        check_buffers(*device);
        if (!toolkits_for("sm_80", {})) {
            MESSAGE("skipped launches: no CUDA toolkit here; pip install nvidia-cuda-nvrtc");
        } else {
            exercise(*device);
        }
        driver->broken = true;
        const Status failed = device->synchronize();
        REQUIRE(!failed);
        CHECK(failed.why().code == "device.failed");
        CHECK(contains(failed.why().help, "new one"));
        auto outlives = device->allocate(8);
        device.reset();
        CHECK((*outlives)->check_guards("outlives"));
    }
    CHECK(driver->live == 0);
    CHECK(driver->remembered == 0);
}

TEST_CASE("a real device, or a message that helps") {
    for (const std::string name : {"cuda:0", "hip:0"}) {
        CAPTURE(name);
        auto device = open_device(*parse_device(name), {});
        if (device) {
            check_buffers(**device);
            exercise(**device);
            continue;
        }
        const Diagnostic& why = device.why();
        CHECK((why.code == "device.no-driver" || why.code == "device.none"));
        CHECK(why.exit == Exit::Lacking);
        CHECK(contains(why.help, "--device cpu"));
        MESSAGE("skipped on " << name << ": " << why.message << "; " << why.help);
    }
    const auto far = open_device({DeviceId::Kind::Cuda, 999}, {});
    REQUIRE(!far);
    CHECK(far.why().exit == Exit::Lacking);
}
