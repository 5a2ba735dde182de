// Kernels, thread pool and whole passes against plain loops in double precision, on random shapes. One program, so
// that it can be built with sanitizers and for other machines. Usage: kernel_test [instruction set ...]

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels.h"
#include "model.h"
#include "thread_pool.h"

namespace {

using namespace draftwood;

int failures = 0;
std::mt19937 random_bits(20240607);

void expect(bool condition, const char* what, const char* isa) {
  if (condition) return;
  std::printf("FAILED %s [%s]\n", what, isa);
  failures++;
}

int uniform(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_bits); }
float normal(float scale = 1.0f) { return std::normal_distribution<float>(0.0f, scale)(random_bits); }

std::vector<float> normals(size_t count, float scale = 1.0f) {
  std::vector<float> values(count);
  for (float& value : values) value = normal(scale);
  return values;
}

// Exactly as large as needed, so that the address sanitizer sees every read past the end.
struct PackedMatrix {
  int inputs, outputs, groups;
  std::vector<uint8_t> weights;
  std::vector<float> scales, bias;
  PackedMatrix(int k, int n, int scale_groups, bool with_bias)
      : inputs(k), outputs(n), groups(scale_groups), weights(static_cast<size_t>(k) * n), scales(static_cast<size_t>(n) * groups) {
    for (uint8_t& weight : weights) weight = static_cast<uint8_t>(uniform(1, 255));
    for (float& scale : scales) scale = 0.01f / std::sqrt(static_cast<float>(k)) * (1.0f + 0.1f * std::fabs(normal()));
    if (with_bias) bias = normals(n, 0.1f);
  }
  Matrix view() const {
    return {weights.data(), scales.data(), bias.empty() ? nullptr : bias.data(), inputs, outputs, groups};
  }
  double weight(int output, int input) const {
    const int tile = output / kTile, lane = output % kTile;
    const int value = weights[static_cast<size_t>(tile) * kTile * inputs + input / 4 * 4 * kTile + lane * 4 + input % 4] - 128;
    const int group = groups == 1 ? 0 : input / kGroup;
    return value * static_cast<double>(scales[(static_cast<size_t>(tile) * groups + group) * kTile + lane]);
  }
};

struct Quantised {
  std::vector<int8_t> values;
  std::vector<float> scales;
  std::vector<int32_t> starts;
  Quantised(const Kernels& kernels, const std::vector<float>& x, int rows, int inputs)
      : values(x.size()), scales(x.size() / kGroup), starts(x.size() / kGroup) {
    for (int g = 0; g < rows * inputs / kGroup; g++)
      kernels.quantise(x.data() + g * kGroup, values.data() + g * kGroup, &scales[g], &starts[g]);
  }
  QuantisedRows view() { return {values.data(), scales.data(), starts.data()}; }
};

void test_quantise(const Kernels& kernels) {
  for (int round = 0; round < 200; round++) {
    std::vector<float> x = normals(kGroup, std::pow(10.0f, static_cast<float>(uniform(-6, 6))));
    if (round == 0) std::fill(x.begin(), x.end(), 0.0f);
    Quantised q(kernels, x, 1, kGroup);
    for (int i = 0; i < kGroup; i++) {
      expect(q.values[i] >= -127, "quantised values stay in [-127, 127]", kernels.name);
      expect(std::fabs(q.values[i] * q.scales[0] - x[i]) <= 0.501f * q.scales[0], "rounding to half a step", kernels.name);
    }
  }
}

void test_matmul(const Kernels& kernels) {
  for (int round = 0; round < 60; round++) {
    const int inputs = kGroup * uniform(1, 6), outputs = kTile * uniform(1, 5), rows = uniform(1, 40);
    const PackedMatrix m(inputs, outputs, round % 2 ? 1 : inputs / kGroup, round % 3 == 0);
    const std::vector<float> x = normals(static_cast<size_t>(rows) * inputs);
    Quantised q(kernels, x, rows, inputs);
    const bool accumulate = round % 5 == 0;
    std::vector<float> out = normals(static_cast<size_t>(rows) * outputs);
    const std::vector<float> before = out;
    const int split = uniform(0, outputs / kTile);
    kernels.matmul(m.view(), 0, split, q.view(), rows, out.data(), outputs, accumulate);
    kernels.matmul(m.view(), split, outputs / kTile - split, q.view(), rows, out.data(), outputs, accumulate);
    for (int r = 0; r < rows; r++) {
      for (int o = 0; o < outputs; o++) {
        double sum = 0, size = 1e-3;
        for (int k = 0; k < inputs; k++) {
          const size_t at = static_cast<size_t>(r) * inputs + k;
          const double part = m.weight(o, k) * q.values[at] * q.scales[at / kGroup];
          sum += part;
          size += std::fabs(part);
        }
        if (!m.bias.empty()) sum += m.bias[o];
        if (accumulate) sum += before[static_cast<size_t>(r) * outputs + o];
        expect(std::fabs(sum - out[static_cast<size_t>(r) * outputs + o]) < 2e-6 * (size + 4), "matmul", kernels.name);
      }
      std::vector<float> alone(before.begin() + static_cast<ptrdiff_t>(r) * outputs, before.begin() + static_cast<ptrdiff_t>(r + 1) * outputs);
      const QuantisedRows one{q.values.data() + static_cast<size_t>(r) * inputs, q.scales.data() + static_cast<size_t>(r) * inputs / kGroup,
                              q.starts.data() + static_cast<size_t>(r) * inputs / kGroup};
      kernels.matmul(m.view(), 0, outputs / kTile, one, 1, alone.data(), outputs, accumulate);
      expect(!std::memcmp(alone.data(), out.data() + static_cast<size_t>(r) * outputs, sizeof(float) * outputs),
             "a row alone has the same bits", kernels.name);
    }
  }
}

void test_norm_and_gates(const Kernels& kernels) {
  for (int round = 0; round < 40; round++) {
    const int size = kGroup * uniform(1, 8);
    const std::vector<float> x = normals(size, 3.0f), weight = normals(size);
    std::vector<int8_t> values(size);
    std::vector<float> scales(size / kGroup);
    std::vector<int32_t> starts(size / kGroup);
    kernels.norm_quantise(x.data(), weight.data(), 1e-5f, size, values.data(), scales.data(), starts.data());
    double squares = 0;
    for (float value : x) squares += static_cast<double>(value) * value;
    for (int i = 0; i < size; i++) {
      const double exact = x[i] / std::sqrt(squares / size + 1e-5) * weight[i];
      expect(std::fabs(values[i] * static_cast<double>(scales[i / kGroup]) - exact) < 0.51 * scales[i / kGroup] + 1e-6, "norm",
             kernels.name);
    }
    const std::vector<float> gate = normals(kGroup, round ? 4.0f : 100.0f), up = normals(kGroup);
    kernels.swiglu_quantise(gate.data(), up.data(), values.data(), scales.data(), starts.data());
    for (int i = 0; i < kGroup; i++) {
      const double exact = gate[i] / (1.0 + std::exp(-static_cast<double>(gate[i]))) * up[i];
      expect(std::fabs(values[i] * static_cast<double>(scales[0]) - exact) < 0.51 * scales[0] + 1e-5, "swiglu", kernels.name);
    }
  }
}

double half_to_double(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const double size = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return half >> 15 ? -size : size;
}

void test_rotate(const Kernels& kernels) {
  for (int dim : {64, 128}) {
    std::vector<float> head = normals(dim), cosine = normals(dim / 2), sine = normals(dim / 2);
    const std::vector<float> before = head;
    kernels.rotate(head.data(), cosine.data(), sine.data(), dim, 0.5f);
    for (int i = 0; i < dim / 2; i++) {
      const double a = before[i], b = before[i + dim / 2];
      expect(std::fabs(head[i] - 0.5 * (a * cosine[i] - b * sine[i])) < 1e-5, "rotation", kernels.name);
      expect(std::fabs(head[i + dim / 2] - 0.5 * (b * cosine[i] + a * sine[i])) < 1e-5, "rotation", kernels.name);
    }
  }
}

void test_attention(const Kernels& kernels) {
  for (int round = 0; round < 40; round++) {
    const int dim = round % 2 ? 64 : 128, queries = uniform(1, 12), count = uniform(1, kKeyChunk);
    const int blocks = (count + kKeyBlock - 1) / kKeyBlock;
    const size_t block_size = static_cast<size_t>(kKeyBlock) * dim;
    std::vector<uint16_t> keys(blocks * block_size), values(blocks * block_size);
    for (int key = 0; key < blocks * kKeyBlock; key++) {  // also beyond `count`: those must not matter
      const float scale = key < count ? 1.0f : 30.0f;
      kernels.store_key(normals(dim, scale).data(), keys.data() + key / kKeyBlock * block_size, key % kKeyBlock, dim);
      kernels.store_value(normals(dim, scale).data(), values.data() + static_cast<size_t>(key) * dim, dim);
    }
    std::vector<const uint16_t*> key_blocks, value_blocks;
    for (int b = 0; b < blocks; b++) {
      key_blocks.push_back(keys.data() + b * block_size);
      value_blocks.push_back(values.data() + b * block_size);
    }
    const std::vector<float> q = normals(static_cast<size_t>(queries) * dim, 0.3f);
    const int stride = kPartialHeader + dim;
    std::vector<float> partials(static_cast<size_t>(queries) * stride), out(dim);
    kernels.attend(q.data(), queries, key_blocks.data(), value_blocks.data(), count, dim, partials.data(), stride);
    for (int h = 0; h < queries; h++) {
      std::vector<double> weights(count);
      double total = 0;
      for (int key = 0; key < count; key++) {
        double score = 0;
        for (int d = 0; d < dim; d++)
          score += q[h * dim + d] * half_to_double(keys[key / kKeyBlock * block_size + d * kKeyBlock + key % kKeyBlock]);
        total += weights[key] = std::exp(score);
      }
      kernels.finish(partials.data() + static_cast<size_t>(h) * stride, out.data(), dim);
      for (int d = 0; d < dim; d++) {
        double sum = 0;
        for (int key = 0; key < count; key++) sum += weights[key] / total * half_to_double(values[static_cast<size_t>(key) * dim + d]);
        expect(std::fabs(sum - out[d]) < 2e-5, "attention", kernels.name);
      }
      std::vector<float> alone(stride);
      kernels.attend(q.data() + h * dim, 1, key_blocks.data(), value_blocks.data(), count, dim, alone.data(), stride);
      const float* with_others = partials.data() + static_cast<size_t>(h) * stride;
      expect(alone[0] == with_others[0] && alone[1] == with_others[1] &&
                 !std::memcmp(&alone[kPartialHeader], with_others + kPartialHeader, sizeof(float) * dim),
             "a head alone has the same bits", kernels.name);
    }
    if (queries > 1) {  // merging a partial of weight a with one of weight b averages them by weight and peak
      std::vector<float> state(partials.begin(), partials.begin() + stride);
      kernels.merge(state.data(), partials.data() + stride, dim);
      kernels.finish(state.data(), out.data(), dim);
      const double peak = std::max(partials[0], partials[stride]);
      const double a = std::exp(partials[0] - peak), b = std::exp(partials[stride] - peak);
      for (int d = 0; d < dim; d++) {
        const double exact = (a * partials[kPartialHeader + d] + b * partials[stride + kPartialHeader + d]) / (a * partials[1] + b * partials[stride + 1]);
        expect(std::fabs(exact - out[d]) < 2e-5, "merge", kernels.name);
      }
    }
  }
}

void test_halves(const Kernels& kernels) {
  std::vector<float> values(64);
  std::vector<uint16_t> halves(64);
  for (int round = 0; round < 300; round++) {
    for (float& value : values) value = normal(std::pow(10.0f, static_cast<float>(uniform(-9, 4))));
    kernels.store_value(values.data(), halves.data(), 64);
    for (int i = 0; i < 64; i++) {
      const double step = std::max(std::ldexp(1.0, -24), std::ldexp(1.0, std::ilogb(values[i]) - 10));
      expect(std::fabs(half_to_double(halves[i]) - values[i]) <= 0.5 * step, "rounding to half", kernels.name);
    }
  }
}

void test_top(const Kernels& kernels) {
  for (int round = 0; round < 50; round++) {
    const int count = kTile * uniform(1, 20), k = uniform(1, 12), first = kTile * uniform(0, 5);
    std::vector<float> logits(count);
    for (float& logit : logits) logit = static_cast<float>(uniform(-9, 9));  // many ties
    std::vector<float> best(k, -INFINITY);
    std::vector<int32_t> ids(k, -1);
    const int split = kTile * uniform(0, count / kTile);
    kernels.top(logits.data(), split, first, k, ids.data(), best.data());
    kernels.top(logits.data() + split, count - split, first + split, k, ids.data(), best.data());
    std::vector<int> order(count);
    for (int i = 0; i < count; i++) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
    for (int i = 0; i < std::min(k, count); i++) expect(ids[i] == first + order[i], "top ids", kernels.name);
  }
}

// -------------------------------------------------------------------------------------------- whole passes

struct TinyModel {
  static constexpr int kHidden = 128, kHeads = 6, kKvHeads = 2, kDim = 64, kFeed = 192, kVocab = 160, kLayers = 2;
  std::vector<PackedMatrix> matrices;
  std::vector<std::vector<float>> norms;
  std::vector<LayerWeights> layers;
  std::vector<float> rotary;
  ModelWeights weights;
  explicit TinyModel(int scale_groups_divisor) {
    matrices.reserve(4 * kLayers + 2);
    const auto matrix = [&](int k, int n, bool bias) {
      matrices.emplace_back(k, n, scale_groups_divisor ? k / kGroup : 1, bias);
      return matrices.back().view();
    };
    const auto norm = [&] {
      norms.push_back(normals(kHidden, 0.5f));
      return norms.back().data();
    };
    norms.reserve(2 * kLayers + 1);
    for (int i = 0; i < kLayers; i++) {
      LayerWeights layer;
      layer.attention_norm = norm();
      layer.feed_norm = norm();
      layer.qkv = matrix(kHidden, (kHeads + 2 * kKvHeads) * kDim, true);
      layer.attention_output = matrix(kHeads * kDim, kHidden, false);
      layer.gate_up = matrix(kHidden, 2 * kFeed, false);
      layer.down = matrix(kFeed, kHidden, false);
      layers.push_back(layer);
    }
    for (int i = 0; i < kDim / 2; i++) rotary.push_back(std::pow(10000.0f, -i / 32.0f));
    weights = {kVocab, 150, kHidden, kLayers, kHeads, kKvHeads, kDim, kFeed, 1e-6f, rotary.data(), norm(), layers.data(), {}, {}};
    weights.embedding = matrix(kHidden, kVocab, false);
    weights.head = matrix(kHidden, kVocab, false);
  }
};

std::vector<float> scores_of(Model& model, Cache& cache, int length, const std::vector<int32_t>& tokens,
                             const std::vector<int32_t>& parents) {
  const int rows = static_cast<int>(tokens.size());
  std::vector<float> logits(static_cast<size_t>(rows) * TinyModel::kVocab), top(static_cast<size_t>(rows) * 3);
  std::vector<int32_t> ids(top.size());
  const Rows view{tokens.data(), parents.data(), rows};
  const Scores scores{logits.data(), ids.data(), top.data(), 3};
  expect(model.forward(cache, length, view, &scores, nullptr) == Status::kDone, "a pass", model.kernels().name);
  for (int r = 0; r < rows; r++) {
    const float* row = logits.data() + static_cast<size_t>(r) * TinyModel::kVocab;
    expect(ids[r * 3] == std::max_element(row, row + TinyModel::kVocab) - row, "the best id", model.kernels().name);
    expect(row[149] > -1e30f && std::isinf(row[150]), "ids beyond the tokenizer", model.kernels().name);
  }
  return logits;
}

void prefill(Model& model, Cache& cache, const std::vector<int32_t>& tokens, int chunk) {
  for (int at = 0; at < static_cast<int>(tokens.size()); at += chunk) {
    const int rows = std::min(chunk, static_cast<int>(tokens.size()) - at);
    std::vector<int32_t> parents(rows);
    for (int i = 0; i < rows; i++) parents[i] = i - 1;
    const Rows view{tokens.data() + at, parents.data(), rows};
    expect(model.forward(cache, at, view, nullptr, nullptr) == Status::kDone, "prefill", model.kernels().name);
  }
}

// Every row of a tree equals the last row of its own path decoded one token at a time; keep() moves the right rows.
void test_passes(const Kernels& kernels) {
  for (int round = 0; round < 8; round++) {
    TinyModel tiny(round % 2);
    Model model(tiny.weights, kernels, 1 + round % 3);
    const int length = round == 0 ? 0 : uniform(0, 300), nodes = uniform(0, 63);
    std::vector<int32_t> prompt(length);
    for (int32_t& token : prompt) token = uniform(0, 149);
    std::vector<int32_t> tokens{uniform(0, 149)}, parents{-1};
    for (int i = 0; i < nodes; i++) {
      tokens.push_back(uniform(0, 149));
      parents.push_back(uniform(std::max(0, i - 5), i));
    }
    Cache cache(tiny.weights, length + 70);
    prefill(model, cache, prompt, uniform(1, 200));
    const std::vector<float> all = scores_of(model, cache, length, tokens, parents);
    for (int row : {0, nodes / 2, nodes}) {
      std::vector<int32_t> path;
      for (int at = row; at >= 0; at = parents[at]) path.insert(path.begin(), at);
      Cache plain(tiny.weights, length + 70);
      prefill(model, plain, prompt, uniform(1, 200));
      std::vector<float> last;
      for (size_t i = 0; i < path.size(); i++) last = scores_of(model, plain, length + static_cast<int>(i), {tokens[path[i]]}, {-1});
      expect(!std::memcmp(last.data(), all.data() + static_cast<size_t>(row) * TinyModel::kVocab, sizeof(float) * TinyModel::kVocab),
             "a row of a tree equals its path one token at a time", kernels.name);
      if (row != nodes) continue;
      cache.keep(length, path.data(), static_cast<int>(path.size()));
      const int after = length + static_cast<int>(path.size());
      expect(scores_of(model, cache, after, {7}, {-1}) == scores_of(model, plain, after, {7}, {-1}), "kept rows", kernels.name);
    }
  }
}

void test_refusals(const Kernels& kernels) {
  TinyModel tiny(0);
  Model model(tiny.weights, kernels, 2);
  Cache cache(tiny.weights, 20);
  const int32_t tokens[] = {1, 2, 160}, good[] = {-1, 0, 0}, bad[] = {-1, 2, 0};
  expect(model.forward(cache, 18, {tokens, good, 3}, nullptr, nullptr) == Status::kNoRoom, "a full cache is refused", kernels.name);
  expect(model.forward(cache, 0, {tokens, good, 3}, nullptr, nullptr) == Status::kBadRows, "an unknown token is refused", kernels.name);
  expect(model.forward(cache, 0, {tokens, bad, 2}, nullptr, nullptr) == Status::kBadRows, "a later parent is refused", kernels.name);
  expect(model.forward(cache, 0, {tokens, good, 2}, nullptr, [] { return 1; }) == Status::kCancelled, "cancelling", kernels.name);
}

void test_thread_pool() {
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int pass = 0; pass < 30; pass++) {
      pool.begin();
      std::vector<int> counts(97, 0);
      for (int phase = 0; phase < 50; phase++) {
        const int chunks = 1 + (phase * 7 + pass) % 97;
        pool.run(chunks, [&](int chunk, int) { counts[chunk]++; });
      }
      int total = 0, expected = 0;
      for (int count : counts) total += count;
      for (int phase = 0; phase < 50; phase++) expected += 1 + (phase * 7 + pass) % 97;
      expect(total == expected, "every chunk runs exactly once", "thread pool");
      pool.end();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<const Kernels*> sets;
  for (int i = 1; i < argc; i++) {
    const Kernels* kernels = kernels_by_name(argv[i]);
    if (!kernels) {
      std::printf("this machine lacks %s\n", argv[i]);
      return 2;
    }
    sets.push_back(kernels);
  }
  if (sets.empty())
    for (const char* name : {"avx512-vnni", "avx2", "neon-dotprod", "portable"})
      if (const Kernels* kernels = kernels_by_name(name)) sets.push_back(kernels);
  for (const Kernels* kernels : sets) {
    for (const auto& test : {test_quantise, test_matmul, test_norm_and_gates, test_rotate, test_attention, test_halves, test_top,
                             test_passes, test_refusals})
      test(*kernels);
    std::printf("%s %s\n", kernels->name, failures ? "FAILED" : "passed");
  }
  test_thread_pool();
  return failures ? 1 : 0;
}
