#include "parsimony/training/recovery/fit_sums.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "parsimony/speedup/least_squares.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::training {
namespace {

// Rows whose products are summed in their own precision; the rest is summed in double.
constexpr int64_t kChunk = 1 << 9;

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::MatrixXd to_eigen(const at::Tensor& matrix) {
  const at::Tensor dense = matrix.to(at::kCPU, at::kDouble).contiguous();
  return Eigen::Map<const RowMajor>(dense.data_ptr<double>(), dense.size(0), dense.size(1));
}

void accumulate(at::Tensor& sum, const at::Tensor& some) {
  sum = sum.defined() ? sum.add_(some) : some.to(at::kDouble);
}

}  // namespace

void FitSums::next_round() {
  for (Share* share : {&seen_, &held_}) {
    share->complete = share->second.defined();
    share->cross.reset();
  }
  lacking_.reset();
}

void FitSums::add(const at::Tensor& x, const at::Tensor& lack, const at::Tensor& target,
                  bool held_out) {
  if (held_out) {
    const auto squares = [](const at::Tensor& rows) { return rows.square().sum({1, 2}); };
    accumulate(lacking_, squares(lack));
    if (!held_.complete) accumulate(wanted_, squares(target));
  }
  add_to(held_out ? held_ : seen_, x, lack);
}

void FitSums::add_to(Share& share, const at::Tensor& x, const at::Tensor& lack) {
  for (int64_t begin = 0; begin < x.size(1); begin += kChunk) {
    const int64_t count = std::min(kChunk, x.size(1) - begin);
    const at::Tensor read = extended(x.narrow(1, begin, count));
    accumulate(share.cross, at::matmul(lack.narrow(1, begin, count).transpose(1, 2), read));
    if (!share.complete) accumulate(share.second, at::matmul(read.transpose(1, 2), read));
  }
}

std::vector<SplitSums> FitSums::sums(const RankGroup* ranks) {
  if (empty()) return {};
  if (ranks != nullptr) {
    for (Share* share : {&seen_, &held_}) {
      if (!share->cross.defined()) continue;
      ranks->sum(share->cross);
      if (!share->complete) ranks->sum(share->second);
    }
    if (lacking_.defined()) ranks->sum(lacking_);
    if (wanted_.defined() && !held_.complete) ranks->sum(wanted_);
  }
  const auto sums_in = [](const Share& share, int64_t g) {
    if (!share.cross.defined()) return LeastSquaresSums();
    return LeastSquaresSums{to_eigen(share.second[g]), to_eigen(share.cross[g])};
  };
  const auto number_in = [](const at::Tensor& numbers, int64_t g) {
    return numbers.defined() ? numbers[g].item<double>() : 0;
  };
  std::vector<SplitSums> sums;
  const at::Tensor& any = seen_.cross.defined() ? seen_.cross : held_.cross;
  for (int64_t g = 0; g < any.size(0); ++g) {
    sums.push_back(
        {sums_in(seen_, g), sums_in(held_, g), number_in(lacking_, g), number_in(wanted_, g)});
  }
  return sums;
}

at::Tensor FitSums::extended(const at::Tensor& x) const {
  at::Tensor one = at::ones({x.size(0), x.size(1), 1}, x.options());
  if (!weights_) return one;
  return shift_ ? at::cat({x, one}, 2) : x;
}

at::Tensor stacked(const std::vector<Eigen::MatrixXd>& matrices) {
  std::vector<at::Tensor> tensors;
  for (const Eigen::MatrixXd& matrix : matrices) {
    const at::Tensor& tensor =
        tensors.emplace_back(at::empty({matrix.rows(), matrix.cols()}, at::kDouble));
    Eigen::Map<RowMajor>(tensor.data_ptr<double>(), matrix.rows(), matrix.cols()) = matrix;
  }
  return at::stack(tensors);
}

at::Tensor in_double(const Weight& weight) { return torch_io::to_tensor(weight).to(at::kDouble); }

void assign(SmallNetwork& small, const Weight& weight, const at::Tensor& values,
            const std::string& reason) {
  const at::Tensor own = values.to(at::kCPU, torch_io::scalar_type_of(weight.dtype)).contiguous();
  const auto* bytes = static_cast<const std::byte*>(own.data_ptr());
  small.assign(weight, {bytes, bytes + own.nbytes()}, reason);
}

}  // namespace parsimony::training
