/*
 * C++ while messages are pending: exceptions through frames with destructors, thrown on and kept for later, streams, strings,
 * containers, and a static object whose lock is held while it is made.
 */
#include "traffic.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

constexpr int kDepth = 12, kThrows = 100, kWords = 200, kRounds = 60;

int alive;

struct Guard {
    std::string name{"a string that is too long to be kept in place"};
    Guard()
    {
        alive++;
    }
    Guard(const Guard &) = delete;
    ~Guard()
    {
        alive--;
        CHECK(arithmetic(50) < 2.0);
    }
};

struct Failure : std::runtime_error {
    int depth;
    Failure(const std::string &what, int at) : std::runtime_error(what), depth(at)
    {
    }
};

int sink(int depth)
{
    Guard guard;
    if (depth == 0)
        throw Failure("at the bottom of " + guard.name, depth);
    try {
        return sink(depth - 1) + 1;
    } catch (Failure &failure) {
        failure.depth++;
        throw;
    } catch (const std::logic_error &) {
        CHECK(false);
    }
    return 0;
}

void fail_and_recover()
{
    std::exception_ptr kept;
    try {
        sink(kDepth);
    } catch (const std::exception &error) {
        kept = std::current_exception();
        CHECK(dynamic_cast<const Failure &>(error).depth == kDepth);
    }
    CHECK(alive == 0);
    try {
        std::rethrow_exception(kept);
    } catch (const Failure &failure) {
        CHECK(std::string(failure.what()).rfind("at the bottom", 0) == 0);
    }
}

void print_and_parse(int round)
{
    std::ostringstream out;
    std::map<std::string, std::unique_ptr<int>> counts;
    for (int i = 0; i < kWords; i++)
        out << "word" << i % 50 << ' ' << i * 0.25 + round << '\n';
    std::istringstream in(out.str());
    std::string word;
    double number = 0, sum = 0;
    while (in >> word >> number) {
        auto &count = counts[word];
        count = std::make_unique<int>(count ? *count + 1 : 1);
        sum += number;
    }
    CHECK(counts.size() == 50 && *counts["word7"] == kWords / 50);
    CHECK(sum == kWords * (kWords - 1) / 2 * 0.25 + kWords * round);
}

void sort_through_a_function(int round)
{
    std::vector<std::string> words;
    for (int i = 0; i < kWords; i++)
        words.push_back(std::to_string(i * 7919 % 1000 + round));
    std::function<bool(const std::string &, const std::string &)> before = [](const auto &a, const auto &b) {
        return arithmetic(20) < 2.0 && a < b;
    };
    std::sort(words.begin(), words.end(), before);
    CHECK(std::is_sorted(words.begin(), words.end()));
}

void make_once()
{
    struct Slow {
        double value = arithmetic(3000000);
    };
    static Slow slow;
    CHECK(slow.value < 2.0);
}

void work(int round)
{
    make_once();
    for (int i = 0; i < kThrows; i++)
        fail_and_recover();
    print_and_parse(round);
    sort_through_a_function(round);
    if (traffic.rank == 0 && round % 20 == 0)
        std::cout << "round " << round << std::endl;
}

} // namespace

int main(int argc, char **argv)
{
    int rank = start(&argc, &argv, 2);
    under_traffic(argc, argv, kRounds, work);
    if (rank == 0)
        std::cout << "thrown, caught, printed, parsed" << std::endl;
    MPI_Finalize();
    return 0;
}
