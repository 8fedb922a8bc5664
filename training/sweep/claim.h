// A lock that dies with its owner.
#pragma once

#include <cstdint>
#include <string>

namespace parsimony::training {

/// Holds the file locked while it lives, unless another process does. The file goes at the end.
class Claim {
 public:
  enum class IfTaken : uint8_t { kGiveUp, kWait };

  /// @throws IoError if there can be no such file
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
