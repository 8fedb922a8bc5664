// A folder for the files of one fuzzer, in memory where the system has such a place.
#pragma once

#include <string>
#include <string_view>

namespace parsimony::fuzz {

class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(Scratch&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  void write(std::string_view name, std::string_view bytes) const;

 private:
  std::string path_;
};

}  // namespace parsimony::fuzz
