// Sums over the ranks of one machine, through memory that they share.
#pragma once

#include <ATen/core/Tensor.h>

#include <chrono>
#include <cstdint>
#include <memory>

namespace c10d {
class Store;
}

namespace parsimony::training {

/// Messages on one machine take longer: small ones, such as the statistics of BatchNorm, to wake
/// the threads that exchange them, large ones to be copied by the kernel. All ranks call the same
/// members in the same order; sums are taken in the order of the ranks, so that all have the same.
class SharedSums {
 public:
  /// Meets the other ranks by the store.
  /// @returns null on all ranks if they do not share memory: on several machines, or without room
  static std::unique_ptr<SharedSums> of(c10d::Store& store, int rank, int size,
                                        std::chrono::milliseconds timeout);
  ~SharedSums();
  SharedSums(const SharedSums&) = delete;
  SharedSums& operator=(const SharedSums&) = delete;

  /// Whether it is dense, contiguous, of numbers, on the CPU and, where ranks are many, small.
  bool takes(const at::Tensor& tensor) const;
  /// In place. @throws std::runtime_error if a rank has ended or does not arrive in time
  void sum(const at::Tensor& tensor);

 private:
  struct Slot;
  struct File;

  SharedSums(std::unique_ptr<File> file, int rank, int size, std::chrono::milliseconds timeout);
  void sum_part(const at::Tensor& part);
  void wait_for(int other) const;

  const std::unique_ptr<File> file_;
  const int rank_;
  const int size_;
  const std::chrono::milliseconds timeout_;
  uint64_t round_ = 0;
};

}  // namespace parsimony::training
