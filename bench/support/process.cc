#include "bench/support/process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>

extern char** environ;

namespace parsimony::bench {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

double cpu_of(const rusage& usage) {
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

rusage wait_for(pid_t child, const std::string& what) {
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(what + " failed");
  }
  return usage;
}

}  // namespace

Run run(const std::vector<std::string>& arguments) {
  std::string line;
  std::vector<char*> words;
  for (const std::string& argument : arguments) {
    line += (line.empty() ? "" : " ") + argument;
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const auto begin = std::chrono::steady_clock::now();
  const int error = posix_spawn(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(line + " cannot be started");
  const rusage usage = wait_for(child, line);
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return {passed.count(), cpu_of(usage), static_cast<int64_t>(usage.ru_maxrss) * 1024};
}

double in_child(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    int status = 0;
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      status = 1;
    }
    _exit(status);
  }
  return cpu_of(wait_for(child, "a child's work"));
}

std::string this_program() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

std::string parsimony_command() {
  const auto build = std::filesystem::path(this_program()).parent_path().parent_path();
  return (build / "bin" / "parsimony").string();
}

}  // namespace parsimony::bench
