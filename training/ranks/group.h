// A group of processes that train one network, connected by c10d over Gloo and, on one machine, by
// shared memory.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/base/errors.h"
#include "parsimony/training/ranks/shared_sums.h"

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace parsimony::training {

/// All ranks call the same members in the same order; each call waits for the others, at most for
/// RankSettings::timeout.
///
///     const RankGroup group(*ranks_of_environment());
///     group.sum(correct);
///
/// Members throw IoError, with rank and reason, if another rank is lost or does not arrive.
class RankGroup {
 public:
  /// Waits until all ranks have joined. @throws ConfigError for an invalid store
  explicit RankGroup(const RankPlace& place);
  /// Joins ranks within one process, or uses a store of the caller's.
  /// @param shares_memory  false: exchanges messages as between machines
  RankGroup(const c10::intrusive_ptr<c10d::Store>& store, const RankPlace& place,
            bool shares_memory = true);
  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  int rank() const { return place_.rank; }
  int size() const { return place_.size; }
  bool is_first() const { return place_.rank == 0; }
  const RankPlace& place() const { return place_; }

  /// Sums a tensor over the ranks, in place.
  void sum(const at::Tensor& tensor) const;
  int64_t sum(int64_t number) const;
  /// Replaces the elements of all ranks' tensors by those of rank 0.
  void share(const std::vector<at::Tensor>& tensors) const;
  /// Returns the text of rank 0.
  std::string share(const std::string& text) const;
  /// Returns the number of rank 0.
  double share(double number) const;
  /// Returns the texts of all ranks, in order.
  std::vector<std::string> gather(const std::string& text) const;
  /// Waits until all ranks have called it.
  void wait() const;

  /// @throws ConfigError, on all ranks, naming `what` and a rank whose text differs from rank 0's
  void agree(std::string_view what, const std::string& text) const;

  const c10::intrusive_ptr<c10d::ProcessGroup>& handle() const { return group_; }
  /// Returns the memory that all ranks share, or null.
  SharedSums* shared() const { return sums_.get(); }
  /// Returns Gloo's description, "tcp, …, iface=eth0, …", and whether memory is shared.
  const std::string& transport() const { return transport_; }

  /// Reports that `what` failed; waits a moment to learn which ranks do not report the same.
  IoError lost(std::string_view what, const std::string& why) const;

 private:
  void meet(const c10::intrusive_ptr<c10d::Store>& store, bool within_machine,
            bool shares_memory = true);
  template <typename Work>
  void collective(std::string_view what, const Work& work) const;

  RankPlace place_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::unique_ptr<SharedSums> sums_;  ///< null: by messages
  std::string transport_;
};

}  // namespace parsimony::training
