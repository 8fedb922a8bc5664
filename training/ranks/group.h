// The processes that train one network together, connected by c10d over Gloo.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/base/errors.h"

namespace c10d {
class ProcessGroup;
class Store;
}  // namespace c10d

namespace parsimony::training {

/// All ranks call the same members in the same order; each call waits for the others, at most as
/// long as RankSettings::timeout says.
///
///     const RankGroup group(*ranks_of_environment());
///     group.sum(correct);
///
/// Members throw IoError, with rank and reason, if another rank is lost or does not come.
class RankGroup {
 public:
  /// Waits until all ranks are there. @throws ConfigError for a store that is none
  explicit RankGroup(const RankPlace& place);
  /// Within one process, or with a store of the caller's own.
  RankGroup(const c10::intrusive_ptr<c10d::Store>& store, const RankPlace& place);
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
  /// The text that rank 0 has.
  std::string share(const std::string& text) const;
  /// The number that rank 0 has.
  double share(double number) const;
  /// What each rank has, in their order.
  std::vector<std::string> gather(const std::string& text) const;
  /// Until all ranks are here.
  void wait() const;

  /// @throws ConfigError, at all ranks, that names `what` and a rank whose text is not rank 0's
  void agree(std::string_view what, const std::string& text) const;

  const c10::intrusive_ptr<c10d::ProcessGroup>& handle() const { return group_; }
  /// As Gloo describes it: "tcp, …, iface=eth0, …".
  const std::string& transport() const { return transport_; }

  /// That `what` failed; waits a moment to learn which ranks are not there to say the same.
  IoError lost(std::string_view what, const std::string& why) const;

 private:
  void meet(const c10::intrusive_ptr<c10d::Store>& store, bool within_machine);
  template <typename Work>
  void collective(std::string_view what, const Work& work) const;

  RankPlace place_;
  c10::intrusive_ptr<c10d::Store> store_;
  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::string transport_;
};

}  // namespace parsimony::training
