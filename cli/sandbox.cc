#include "parsimony/cli/sandbox.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <new>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/options.h"

namespace parsimony::cli {
namespace {

/// --sandbox on is not supported by a kernel without `what`.
UnsupportedError no_sandbox(std::string_view what) {
  return UnsupportedError("--sandbox on: this kernel has no ", what);
}

namespace fs = std::filesystem;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

/// System calls that are not needed to read, prune and run a network.
constexpr int kForbidden[] = {__NR_socket,
                              __NR_socketpair,
                              __NR_connect,
                              __NR_bind,
                              __NR_listen,
                              __NR_accept,
                              __NR_accept4,
                              __NR_execve,
                              __NR_execveat,
                              __NR_ptrace,
                              __NR_process_vm_readv,
                              __NR_process_vm_writev,
                              __NR_io_uring_setup,
                              __NR_bpf,
                              __NR_perf_event_open,
                              __NR_userfaultfd,
                              __NR_mount,
                              __NR_umount2,
                              __NR_pivot_root,
                              __NR_init_module,
                              __NR_finit_module,
                              __NR_kexec_load,
                              __NR_keyctl,
                              __NR_add_key,
                              __NR_request_key,
                              __NR_open_by_handle_at};

/// @returns false if the kernel has no such filters
bool forbid_calls() {
  if (kArchitecture == 0) return false;
  constexpr uint32_t kRefused = SECCOMP_RET_ERRNO | EPERM;
  std::vector<sock_filter> program = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, kRefused),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const int call : kForbidden) {
    program.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    program.push_back(BPF_STMT(BPF_RET | BPF_K, kRefused));
  }
#if defined(__x86_64__)
  constexpr uint32_t kX32 = 0x40000000;  // the same calls under other numbers
  program.push_back(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32, 0, 1));
  program.push_back(BPF_STMT(BPF_RET | BPF_K, kRefused));
#endif
  program.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(program.size()), program.data()};
  return syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0;
}

/// Allows the handled accesses below a path; missing paths need no rule.
void allow_below(int ruleset, const fs::path& path, uint64_t access) {
  const int folder = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (folder < 0) return;
  landlock_path_beneath_attr rule{};
  rule.allowed_access = access;
  rule.parent_fd = folder;
  syscall(__NR_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  close(folder);
}

/// @returns false if the kernel has no Landlock
bool forbid_writes(const std::vector<fs::path>& but_below) {
  const long version =
      syscall(__NR_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version < 1) return false;
  constexpr uint64_t kRename = uint64_t{1} << 13;    // LANDLOCK_ACCESS_FS_REFER, of version 2
  constexpr uint64_t kTruncate = uint64_t{1} << 14;  // LANDLOCK_ACCESS_FS_TRUNCATE, of version 3
  uint64_t writing = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |
                     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
  if (version >= 2) writing |= kRename;
  if (version >= 3) writing |= kTruncate;
  landlock_ruleset_attr attributes{};
  attributes.handled_access_fs = writing;
  const int ruleset = static_cast<int>(
      syscall(__NR_landlock_create_ruleset, &attributes, sizeof attributes.handled_access_fs, 0));
  if (ruleset < 0) return false;
  for (const fs::path& path : but_below) allow_below(ruleset, path, writing);
  const uint64_t of_file = LANDLOCK_ACCESS_FS_WRITE_FILE | (version >= 3 ? kTruncate : uint64_t{0});
  allow_below(ruleset, "/dev/null", of_file);
  const bool entered = syscall(__NR_landlock_restrict_self, ruleset, 0) == 0;
  close(ruleset);
  return entered;
}

void bound(int resource, rlim_t most, const char* option) {
  rlimit limits{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limits);
  limits.rlim_cur = std::min(most, limits.rlim_max);
  if (setrlimit(static_cast<__rlimit_resource>(resource), &limits) != 0) {
    throw UnsupportedError(option, ": the system refuses: ", std::strerror(errno));
  }
}

void end_with(std::string_view text) {
  static_cast<void>(!write(STDERR_FILENO, text.data(), text.size()));
  _exit(static_cast<int>(Exit::kUnsupported));
}

void end_of_time(int /*signal*/) {
  end_with("parsimony: exceeded --max-seconds of processor time\n");
}

/// Set when an allocation was refused. The caller may recover, or abort the process.
volatile std::sig_atomic_t memory_was_refused = 0;

void refuse_memory() {
  memory_was_refused = 1;
  throw std::bad_alloc();
}

/// mimalloc, if linked, does not call C++'s new handler.
void watch_mimalloc() {
  using OnError = void (*)(int error, void* argument);
  const auto watch =
      reinterpret_cast<void (*)(OnError, void*)>(dlsym(RTLD_DEFAULT, "mi_register_error"));
  if (watch == nullptr) return;
  const auto on_error = [](int error, void* /*argument*/) {
    if (error == ENOMEM) memory_was_refused = 1;
  };
  watch(on_error, nullptr);
}

/// Returns the bytes that RLIMIT_DATA counts: the sixth number of /proc/self/statm, in pages.
/// Async-signal-safe.
uint64_t data_in_use() {
  std::array<char, 256> text{};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0 || read(file, text.data(), text.size() - 1) <= 0) return 0;
  close(file);
  uint64_t pages = 0;
  int gaps = 0;
  for (const char c : text) {
    if (c == ' ') ++gaps;
    if (gaps == 5 && c >= '0' && c <= '9') pages = 10 * pages + static_cast<uint64_t>(c - '0');
  }
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

/// ONNX Runtime aborts when out of memory. Other aborts are crashes: abort() continues when this
/// returns, and external signals are raised again.
void end_of_memory(int signal) {
  rlimit limits{};
  getrlimit(RLIMIT_DATA, &limits);
  if (memory_was_refused != 0 || data_in_use() > limits.rlim_cur / 8 * 7) {
    end_with("parsimony: out of memory: --max-memory was exceeded\n");
  }
  std::signal(signal, SIG_DFL);
  static_cast<void>(raise(signal));
}

/// CLI11's reader of sizes, with our message.
CLI::Validator a_size() {
  const CLI::AsSizeValue read(/*kb_is_1000=*/false);
  const auto check = [read](std::string& text) {
    const std::string found = text;
    try {
      if (read(text).empty()) return std::string();
    } catch (const CLI::ParseError&) {  // not a size
    }
    return "found \"" + found + "\", expected a size, for example 4G or 512M";
  };
  return {check, read.get_description()};
}

}  // namespace

void add_limit_options(CLI::App& app, ProcessLimits& limits) {
  const auto group = "Untrusted files, with any command";
  add_option(app, "--max-memory", limits.memory, "SIZE",
             "Memory limit: 4G, 512M (default: the system's)")
      ->transform(a_size())
      ->group(group);
  add_option(app, "--max-seconds", limits.seconds, "S",
             "CPU time limit, in seconds (default: the system's)")
      ->check(above_zero())
      ->group(group);
  add_option(app, "--sandbox", limits.sandbox, "WHEN",
             "Read and run models without access to sockets, other programs, or files outside the "
             "outputs' folders. auto: if the kernel supports it and no user command runs")
      ->check(any_of({"auto", "on", "off"}))
      ->group(group);
}

void apply(const ProcessLimits& limits) {
  if (limits.memory > 0) {
    std::set_new_handler(refuse_memory);
    watch_mimalloc();
    std::signal(SIGABRT, end_of_memory);
    bound(RLIMIT_DATA, limits.memory, "--max-memory");
  }
  if (limits.seconds > 0) {
    std::signal(SIGXCPU, end_of_time);
    bound(RLIMIT_CPU, static_cast<rlim_t>(std::max(1.0, limits.seconds)), "--max-seconds");
  }
}

void enter_sandbox(const ProcessLimits& limits, std::span<const NamedFile> outputs,
                   bool starts_programs) {
  const bool required = limits.sandbox == "on";
  if (limits.sandbox == "off" || (starts_programs && !required)) return;
  if (starts_programs) {
    throw ConfigError(
        "--sandbox on cannot be combined with user commands (--metric, --latency-command), "
        "--processes, or the driver of a --provider or --device; use --sandbox auto");
  }
  std::error_code ignored;  // what does not exist cannot be written to
  std::vector<fs::path> folders = {fs::temp_directory_path(ignored), cache_folder()};
  for (const NamedFile& output : outputs) {
    if (output.path.empty()) continue;
    folders.push_back(fs::absolute(output.path).parent_path());
    folders.push_back(fs::weakly_canonical(output.path, ignored).parent_path());  // of a link
  }
  const bool alone = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  const bool writes = alone && forbid_writes(folders);
  const bool calls = alone && forbid_calls();
  if (required && !writes) throw no_sandbox("Landlock");
  if (required && !calls) throw no_sandbox("seccomp");
}

}  // namespace parsimony::cli
