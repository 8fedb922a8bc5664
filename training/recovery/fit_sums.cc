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
  const at::Tensor dense = matrix.to(at::kDouble).contiguous();
  return Eigen::Map<const RowMajor>(dense.data_ptr<double>(), dense.size(0), dense.size(1));
}

void accumulate(at::Tensor& sum, const at::Tensor& some) {
  sum = sum.defined() ? sum.add_(some) : some.to(at::kDouble);
}

}  // namespace

void FitSums::next_round() {
  complete_ = second_.defined();
  cross_.reset();
}

void FitSums::add(const at::Tensor& x, const at::Tensor& lack) {
  for (int64_t begin = 0; begin < x.size(1); begin += kChunk) {
    const int64_t count = std::min(kChunk, x.size(1) - begin);
    const at::Tensor read = extended(x.narrow(1, begin, count));
    accumulate(cross_, at::matmul(lack.narrow(1, begin, count).transpose(1, 2), read));
    if (!complete_) accumulate(second_, at::matmul(read.transpose(1, 2), read));
  }
}

std::vector<Eigen::MatrixXd> FitSums::solve(double ridge, const RankGroup* ranks) {
  if (empty()) return {};
  if (ranks != nullptr) {
    ranks->sum(cross_);
    if (!complete_) ranks->sum(second_);
  }
  if (cross_.eq(0).all().item<bool>()) return {};
  std::vector<Eigen::MatrixXd> solutions;
  for (int64_t g = 0; g < second_.size(0); ++g) {
    const LeastSquaresSums sums{to_eigen(second_[g]), to_eigen(cross_[g])};
    solutions.push_back(least_squares(sums, weights_ ? ridge : 0));
  }
  return solutions;
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
  const at::Tensor own = values.to(torch_io::scalar_type_of(weight.dtype)).contiguous();
  const auto* bytes = static_cast<const std::byte*>(own.data_ptr());
  small.assign(weight, {bytes, bytes + own.nbytes()}, reason);
}

}  // namespace parsimony::training
