"""Estimates of a contrast for every outcome, with standard errors, from noisy sums.

The estimator is a weighted difference within sites. Participant i has weight w_i (the contrast less
its mean in the site and less its regression on the covariates), clipping factor c_i and outcomes
u_iv. The second round releases, with Gaussian noise of known variance,

    T_v = Σ c_i w_i u_iv          weighted sum of outcome v
    D   = Σ c_i w_i t_i           divisor, t being the contrast
    Q_v                           squared differences of pairs, an estimate of Var T_v
    E   = Σ ‖c_i u_i‖² / V        squared clipped outcomes
    b   = Σ c_i w_i               sum of the clipped weights, 0 without clipping

The effect is T_v / D. Its variance is the sum of sampling variance, privacy noise in T, noise of
the first round (covariate adjustment, site means, imbalance of the clipped weights, bias from
clipped covariates), and the correction of long tails. The first round released G, A and M, sums of
the covariates with the contrast, with each other and by site. σ_j is the standard deviation of the
noise in an entry of release j. All computations use public or released numbers, so they cost no
privacy. The formulas are explained in docs/explanation/glm-proof.md. Constants without a
reference are choices, not results.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from consortium.algorithms.glm.kernels.clipped_squares import clipped_part
from consortium.algorithms.glm.kernels.shrinkage import shrinkage_factor
from consortium.base.array import Array

SITE_VARIANCE = 0.25
"""τ²: prior mean of the fraction of an outcome's variance that is between sites."""
TOTAL_DEVIATION = (1 - SITE_VARIANCE) ** -0.5
"""Usual standard deviation among all participants, relative to that within groups and sites. Sums
are in units of the former; studies state the latter, and effects are reported in it."""
# Prior standard deviation of τ², and of D relative to its prior mean.
PRIOR_WIDTH = 0.15
# Relative prior standard deviation of the sampling variance of a single outcome.
_SINGLE_WIDTH = 0.4
_LEAST_MEAN = 0.15  # least mean sampling variance, relative to that with sites' constants
# Least variance: in standard errors, and relative to the outcomes' mean variance.
_CLEARLY = 1.0
_LEAST_SQUARE = 0.02
_LEAST_DIVISOR = 0.05  # relative to its prior mean: noise must not make an effect infinite


@dataclass(frozen=True, eq=False)
class ContrastSums:
    """Released sums of the second round, for V outcomes."""

    effects: Array
    """T, after R^¼, length V."""
    divisor: float
    """D."""
    squares: Array
    """Q, length V, scaled from pairs to all participants and by 2 W², so its expectation is Var
    T."""
    spread: float
    """E divided by the number of participants: mean squared clipped outcome."""
    balance: Array
    """b = Σ c w of the contrast and of every other coefficient, length K: 0 except for clipping,
    and for errors of the sites' centres."""
    noise: dict[str, float]
    """σ_j of T, D, Q, E and b, scaled as the sums are; that of E is divided by the number of
    participants."""
    tail_variance: Array
    """Variance that the correction of long tails adds to T, length V."""
    widest: float = math.inf
    """Norm to which squared differences of pairs were clipped, scaled as Q; infinite without
    clipping."""


@dataclass(frozen=True)
class Expected:
    """Values about the second round that are known before its sums are read."""

    divisor: float
    """Prior mean of D: c N_a (1 - R²)."""
    squares: float
    """N_u, expected sum of the participants' squared weights w before they are clipped.

    For groups Σ a² n q (1 - q), reduced by the part that covariates explain; see `expected_of`."""
    clip: float
    """c, mean clipping factor of a contribution."""
    persons: float
    explained: float
    """β², fraction of an outcome's variance that the covariates explain."""
    root: Array | float
    """Diagonal of R^½, or its common value g."""
    adjustment_noise: float
    """k′ σ_G² + σ_A² ‖γ‖² (p + 1)/(2p), noise variance in the sums of p covariates, with k′ the
    fraction of the noise of G that remains after shrinking."""
    offset_noise: float
    """Noise variance in the sites' means: ‖γ‖² Σ a_s² v_s; for a slope, whose own column is centred
    by noisy means, Σ v_s is added."""
    missed: float = 0.0
    """η²/s², variance of the outcomes' learned centres, in squared learned standard deviations."""
    unevenness: float = 0.0
    """Σ (I_s/ΣI - n_s/N)², and a little more: variance of T from sites' levels per unit of b², if
    each site contributes to b in proportion to its information."""
    count_noise: float = 0.0
    """Variance of the product of the contrast with a covariate from errors of counts."""
    presence_variance: Array | float = 0.0
    """Squared coefficient of variation of the fraction of participants who have each outcome."""
    clipped_share: float = 1.0
    """Fraction of the participants who are clipped. Only these unbalance the weights."""
    cut: float = 1.0
    """Variance of a clipped outcome relative to c² times that of the outcome."""
    bias: float = 0.0
    """Possible bias of effects from clipped covariates."""
    width: float = PRIOR_WIDTH
    """Prior standard deviation of D, relative to its prior mean."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """Effects with standard errors and tests, in learned total standard deviations."""

    effects: Array
    errors: Array
    statistics: Array
    freedom: Array
    p: Array
    q: Array
    widths: Array
    """Estimate, standard error, t and its degrees of freedom, p and q of Benjamini and Hochberg,
    and the standard error for intervals, which includes the divisor's noise. Each of length V."""


@dataclass(frozen=True, eq=False)
class Effects:
    """Estimates of every outcome, with the components of their variance."""

    each: Estimates
    divisor: float
    divisor_variance: float
    """D̂ and its variance."""
    sum_variances: Array
    """V̂, sampling variance of every sum T (not of the effect T/D̂), length V."""
    sites: float
    clip: float
    """c²τ̂², variance of clipped outcomes between sites, and c."""
    sampling: float
    privacy: float
    leak: float
    """Components of the mean variance: sampling, privacy noise, and noise of the first round."""
    freedom: float
    """Degrees of freedom of ``sum_variances``."""
    balance: Array
    """Expected b² of every coefficient, length K."""
    tail_variance: Array
    """Variance from the correction of long tails, as in `ContrastSums`. Length V."""
    lost: Array
    """Fraction of the sampling variance that clipping of pairs removed, and that is added. Length
    V."""

    @property
    def between(self) -> float:
        """τ̂², variance between sites of outcomes that are not clipped."""
        return self.sites / self.clip**2


def estimate_effects(
    sums: ContrastSums, expected: Expected, offset: Array | float = 0.0
) -> Effects:
    """Return the effect on every outcome, with all components of its variance.

    Variance of T from the first round: c² β² · `adjustment_noise` + c² τ² · `offset_noise` + b² ·
    `imbalance_variance` + (`bias` · D)². If slopes are wrong by δ, T contains δᵀ Σ c x u, whose
    size depends on β². If site means are wrong, weights do not sum to 0 within a site, so the
    site's own level (variance τ²) enters T. Assumption: the same β² and τ² for every outcome.

    Variance of T from privacy: σ_T² diag(R^½), exact, because sites release R^-¼ u with independent
    noise and the centre multiplies by R^¼.

    Parameters
    ----------
    offset : array or float
        Known effects that sites subtracted from the outcomes, length V.
    """
    divisor, divisor_variance = shrink_gaussian(
        sums.divisor, sums.noise["divisor"], expected.divisor, expected.width * expected.divisor
    )
    divisor = max(divisor, _LEAST_DIVISOR * expected.divisor)
    sampling = shrink_squares(sums, expected)
    freedom = freedom_of_squares(expected.persons)
    if len(sums.squares) == 1:
        sampling, freedom = _single_square(sums, expected)
    lost = clipped_part(sampling, float(np.square(sampling).sum()), sums.widest)
    sampling = restored_squares(sampling, lost)
    privacy = sums.noise["effects"] ** 2 * expected.root
    sites = _site_variance(sums, expected)
    explained = expected.clip**2 * expected.explained
    leak = explained * expected.adjustment_noise + sites * expected.offset_noise
    balance = squared_balance(sums, expected)
    leak += float(balance[0]) * imbalance_variance(
        sites / expected.clip**2, expected.missed, expected
    )
    leak += (expected.bias * divisor) ** 2
    # Also the fraction of participants who have an outcome is estimated, and divides its effect.
    whole_variance = divisor_variance + divisor**2 * expected.presence_variance
    other = privacy + leak + sums.tail_variance
    each = effects_of(
        sums=sums.effects,
        sampling=sampling,
        other=other,
        divisor=divisor,
        divisor_variance=whole_variance,
        freedom=freedom,
        offset=offset,
    )
    return Effects(
        each=each,
        divisor=divisor,
        divisor_variance=divisor_variance,
        sum_variances=sampling,
        sites=sites,
        clip=expected.clip,
        sampling=float(sampling.mean()),
        privacy=float(np.mean(privacy)),
        leak=leak,
        freedom=freedom,
        balance=balance,
        tail_variance=sums.tail_variance,
        lost=lost,
    )


def expected_balance(expected: Expected) -> float:
    """Return π_b², the prior variance of b: (0.15 D)² times the fraction of participants clipped.

    Without clipping the weights sum to 0. The 0.15 is a choice.
    """
    return expected.clipped_share * (PRIOR_WIDTH * expected.divisor) ** 2


def squared_balance(sums: ContrastSums, expected: Expected) -> Array:
    """Return E[b² | released b] of every coefficient, length K.

    Formula: (k b)² + π²(1 - k) with k = π²/(π² + σ_b²): squared posterior mean plus posterior
    variance, for b ~ N(0, π²). If noise hides b, the prior variance π² counts.
    """
    width = expected_balance(expected)
    noise = sums.noise["balance"] ** 2
    kept = shrinkage_factor(width, noise)
    found: Array = np.square(kept * sums.balance) + width * (1 - kept)
    return found


def imbalance_variance(sites: Array | float, missed: Array | float, expected: Expected) -> Any:
    """Return the variance of T per unit of b²: τ² Σ (I_s/ΣI - n_s/n)² + η²/s².

    Clipping reduces some contributions more than others, so the weights no longer sum to 0 (b ≠ 0),
    and T contains b times the distance of the outcomes from their centre. A part of this distance
    is the error of the learned centre (η²/s²), another part the sites' own levels (τ²). Assumption:
    each site contributes to b in proportion to its information I_s.
    """
    return sites * expected.unevenness + missed


def effects_of(
    sums: Array,
    sampling: Array,
    other: Array | float,
    divisor: float,
    divisor_variance: Array | float,
    freedom: float,
    offset: Array | float = 0.0,
) -> Estimates:
    """Divide sums by the divisor, and return effects with standard errors and tests.

    Parameters
    ----------
    sums : array, length V
        T, or means of some.
    sampling, other : array, length V
        Sampling variance of ``sums``, and the sum of all other components.
    divisor, divisor_variance : float
        D̂ and its variance.
    freedom : float
        Degrees of freedom of ``sampling``.
    offset : array or float
        Known effects that are added.
    """
    total = sampling + other
    return tested_effects(
        effects=sums / divisor,
        sampling=sampling / divisor**2,
        total=total / divisor**2,
        freedom=freedom,
        relative_divisor_variance=divisor_variance / divisor**2,
        offset=offset,
    )


def freedom_of_squares(persons: float) -> float:
    """Return the degrees of freedom ν of a variance from squared differences on a ring.

    Formula: ν = n/(1.25 κ + 0.25), with κ = n Σ w⁴/(Σ w²)² the kurtosis of the weights. The n pairs
    of neighbours i, j in a ring give Q = Σ w_i² u_i² - ½ Σ (w_i² + w_j²) u_i u_j. For normal
    outcomes in random order the relative variance of Q is (2.5 κ + 0.5)/n, which is 2/ν. So ν is
    n/1.5 for two groups of equal size (κ = 1). It was measured as n/1.9 with covariates (κ = 1.3)
    and as n/3 for a slope whose column is clipped (κ = 2.2). All contrasts take n/2.4 (κ = 1.7), a
    choice between these: two groups with fractions of 0.3 and 0.7 have it.
    """
    return persons / 2.4


def chance_of_squares(persons: float) -> float:
    """Return the relative sampling variance 2/ν of such a variance, which is 4.8/n."""
    return 2 / freedom_of_squares(persons)


def tested_effects(
    effects: Array,
    sampling: Array,
    total: Array,
    freedom: float,
    relative_divisor_variance: Array | float,
    offset: Array | float,
) -> Estimates:
    """Return standard errors, t tests, false discovery rates and interval errors of effects.

    The degrees of freedom are Satterthwaite's, ν (total/sampling)²: only the sampling variance is
    estimated, all other components are known. Intervals add effect² Var(D̂)/D̂² by the delta
    method. Tests of no effect do not need the divisor, except for a known effect that is added: the
    sums contain its negative if the whole effect is zero.

    Parameters
    ----------
    effects : array, length V
    sampling, total : array, length V
        Sampling variance of the effects, which is estimated, and their total variance.
    freedom : float
        Degrees of freedom of ``sampling``.
    relative_divisor_variance : float
        Variance of the divisor over its square.
    offset : array or float
        Known effects that are added; otherwise 0.
    """
    errors = np.sqrt(total + np.square(offset) * relative_divisor_variance)
    whole = effects + offset
    statistics = whole / errors
    own = freedom * (np.square(errors) / sampling) ** 2
    p = 2 * stdtr(own, -np.abs(statistics))
    widths = np.sqrt(total + effects**2 * relative_divisor_variance)
    return Estimates(
        effects=whole,
        errors=errors,
        statistics=statistics,
        freedom=own,
        p=p,
        q=false_discovery(p),
        widths=widths,
    )


def shrink_gaussian(found: float, noise: float, centre: float, width: float) -> tuple[float, float]:
    """Return the posterior mean and variance of a number with normal noise and a normal prior."""
    kept = float(shrinkage_factor(width**2, noise**2))
    return centre + kept * (found - centre), kept * noise**2


def shrink_squares(sums: ContrastSums, expected: Expected) -> Array:
    """Return V̂: sampling variance of every T_v, shrunk to the outcomes' mean (empirical Bayes).

    Formula: m + k (Q - m), k = s²/(s² + e²), with m the mean of Q, e² the error variance of one Q
    (privacy noise, and 2 m²/ν from sampling) and s² the variance of Q over outcomes less e². The
    result is at least e, limited to between 0.02 m and 0.3 m, because a variance that is too small
    would turn noise into a discovery. The limits are choices.
    """
    mean = max(float(sums.squares.mean()), _LEAST_MEAN * expected.clip**2 * expected.squares)
    chance = sums.noise["squares"] ** 2 + mean**2 * chance_of_squares(expected.persons)
    real = max(0.0, float(sums.squares.var()) - chance)
    kept = shrinkage_factor(real, chance)
    least = np.clip(_CLEARLY * np.sqrt(chance), _LEAST_SQUARE * mean, 0.3 * mean)
    shrunk: Array = np.maximum(mean + kept * (sums.squares - mean), least)
    return shrunk


def restored_squares(squares: Array, lost: Array) -> Array:
    """Return variances corrected for clipping that reduced them more than the least reduced one."""
    return np.asarray(squares * (1.0 - lost.min(initial=1.0)) / (1.0 - lost))


def _single_square(sums: ContrastSums, expected: Expected) -> tuple[Array, float]:
    """Return V̂ of a single outcome, and its degrees of freedom.

    It cannot be shrunk to other outcomes, and its noise may be as large as its value. So it is
    combined with a public prior, and its posterior variance reduces the degrees of freedom.
    """
    whole = expected.clip**2 * expected.squares
    usual = (1 - SITE_VARIANCE) * expected.cut * whole
    found, variance = shrink_gaussian(
        float(sums.squares[0]), sums.noise["squares"], usual, _SINGLE_WIDTH * usual
    )
    value = max(found, _LEAST_MEAN * whole)
    freedom = 1 / (1 / freedom_of_squares(expected.persons) + variance / (2 * value**2))
    return np.array([value]), freedom


def _site_variance(sums: ContrastSums, expected: Expected) -> float:
    """Return c²τ̂²: variance of clipped outcomes less that within sites, combined with its prior.

    It contains c², as everything that is released.
    """
    within = float(sums.squares.mean()) / expected.squares
    noise = np.hypot(
        sums.noise["spread"],
        sums.noise["squares"] / np.sqrt(len(sums.squares)) / expected.squares,
    )
    left = expected.clip**2
    found, _ = shrink_gaussian(
        sums.spread - within, float(noise), left * SITE_VARIANCE, left * PRIOR_WIDTH
    )
    return max(found, 0.05 * left)


def false_discovery(p: Array) -> Array:
    """Return q of Benjamini and Hochberg: the smallest false discovery rate to accept each test."""
    order = np.argsort(p)
    ranked = p[order] * len(p) / np.arange(1, len(p) + 1)
    least = np.minimum.accumulate(ranked[::-1])[::-1]
    q = np.empty_like(p)
    q[order] = np.minimum(least, 1.0)
    return q
