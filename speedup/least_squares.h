// Closed-form least squares from sums over samples, with which recovery refits layers.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <optional>
#include <vector>

namespace parsimony {

/// Sufficient statistics of a linear fit: memory does not grow with the number of samples.
struct LeastSquaresSums {
  Eigen::MatrixXd second;  ///< G = Σ x xᵀ, [in, in]
  Eigen::MatrixXd cross;   ///< C = Σ y xᵀ, [out, in]
};

/// The best fit of y = W x:
///
///     W = argmin Σ ‖y − W x‖² + λ ‖W‖²  =  C (G + λ I)⁻¹,     λ = ridge · trace(G) / in
///
/// If y is the residual of a layer, W is the change of its weights, which λ pulls towards zero.
/// Solved by Cholesky's decomposition in double.
/// @param ridge  ≥ 0, without unit; 0 is plain least squares, whose W is not unique where G is
///               singular
/// @returns [out, in]; zeros if all samples were zero
/// @throws ModelError if the sums' sizes do not match or the sums are not finite
/// @source Hoerl and Kennard, Ridge Regression, Technometrics 1970; He, Zhang, Sun, Channel Pruning
/// for Accelerating Very Deep Neural Networks, ICCV 2017 (its reconstruction step)
Eigen::MatrixXd least_squares(const LeastSquaresSums& sums, double ridge);

/// The sums of a fit, split by sample: what it sees, and what is held out to judge it.
struct SplitSums {
  LeastSquaresSums seen;
  LeastSquaresSums held_out;  ///< empty: nothing was held out
  double residual = 0;        ///< Σ ‖y‖² of what was held out
  double target = 0;          ///< Σ ‖t‖² of it, where y is what a layer's answer lacks of t
};

/// Kernels for large matrices, all or none. They return false, and change nothing, if they cannot.
struct MatrixKernels {
  /// C = A B; C has its size.
  std::function<bool(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b, Eigen::MatrixXd& c)>
      multiply = {};
  /// Replaces B by the solution of A X = B for a symmetric, positive definite A.
  std::function<bool(const Eigen::MatrixXd& a, Eigen::MatrixXd& b)> solve = {};
};

/// Σ ‖y − W x‖² over what was held out: tr(W G Wᵀ) − 2 tr(W Cᵀ) + Σ ‖y‖².
double held_out_error(const SplitSums& sums, const Eigen::MatrixXd& map,
                      const MatrixKernels& kernels = {});

/// The systems of one layer, such as its groups, with the ridge that serves all of them best.
struct ValidatedFit {
  std::vector<Eigen::MatrixXd> seen;  ///< by system, from what was seen; empty: nothing lacks
  std::vector<Eigen::MatrixXd> all;   ///< the same with what was held out
  double ridge = 0;
  bool validated = false;  ///< was anything held out?
  double before = 0;       ///< its error without the fit
  double after = 0;        ///< with `seen`
  double target = 0;       ///< Σ ‖t‖² of it

  bool helps() const { return !seen.empty() && (!validated || after < before); }
};

/// Fits with the ridge, from 0.0001 on in steps of ten, up to 1, for as long as the error on what
/// was held out becomes smaller; 0.001 if nothing was. No fit where what was held out has no error
/// but rounding.
/// @param ridge  takes this one
/// @param kernels  for large systems; Eigen's are for the others, and where these cannot
ValidatedFit validated_fit(const std::vector<SplitSums>& systems, std::optional<double> ridge,
                           const MatrixKernels& kernels = {});

}  // namespace parsimony
