// A file lock that is released when its owner dies.
#pragma once

#include <cstdint>
#include <string>

namespace parsimony::training {

/// Locks the file during its lifetime, unless another process has. The file is removed at the end.
class Claim {
 public:
  enum class IfTaken : uint8_t { kGiveUp, kWait };

  /// @throws IoError if the file cannot be created
  explicit Claim(std::string path, IfTaken if_taken = IfTaken::kGiveUp);
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;

  bool held() const { return descriptor_ >= 0; }

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace parsimony::training
