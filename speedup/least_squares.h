// Closed-form least squares from sums over samples, with which recovery refits layers.
#pragma once

#include <Eigen/Core>

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
/// Solved by LDLT in double.
/// @param ridge  ≥ 0, without unit; 0 is plain least squares, whose W is not unique where G is
///               singular
/// @returns [out, in]; zeros if all samples were zero
/// @throws ModelError if the sums' sizes do not match or the sums are not finite
/// @source Hoerl and Kennard, Ridge Regression, Technometrics 1970; He, Zhang, Sun, Channel Pruning
/// for Accelerating Very Deep Neural Networks, ICCV 2017 (its reconstruction step)
Eigen::MatrixXd least_squares(const LeastSquaresSums& sums, double ridge);

}  // namespace parsimony
