// The concurrent kernel of reach.c in C++: messages, the exchange and the loops over words are templates, which the compiler
// inlines. Who looks at the program from outside finds the words written and touched in the smallest of these, and the lines
// that matter, which are marked, around them.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

struct Options {
    int words = 2048, iterations = 200, produce_ns = 500, consume_ns = 300, before_us = 400, after_us = 250;
    std::string produced = "same", consumed = "same";
};

constexpr const char *help =
    "reach [-n WORDS] [-i ITERATIONS] [-P NS] [-C NS] [-p US] [-c US] [-o ORDER] [-t ORDER]: as reach.c's\n";

double now_ns()
{
    using namespace std::chrono;
    return static_cast<double>(duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

// --- messages

// Words of a message, with a place from which they are read and into which they are written.
template <class Word> class Message {
  public:
    explicit Message(int count) : words_(static_cast<std::size_t>(count))
    {
    }
    void put(int i, Word word)
    {
        words_[static_cast<std::size_t>(i)] = word;
    }
    Word take(int i) const
    {
        return words_[static_cast<std::size_t>(i)];
    }
    Word *data()
    {
        return words_.data();
    }
    int count() const
    {
        return static_cast<int>(words_.size());
    }

  private:
    std::vector<Word> words_;
};

template <class Word> struct Datatype;
template <> struct Datatype<double> {
    static MPI_Datatype of()
    {
        return MPI_DOUBLE;
    }
};

// With the neighbours in a ring.
template <class Word> class Exchange {
  public:
    Exchange(MPI_Comm comm, int tag) : comm_(comm), tag_(tag)
    {
        MPI_Comm_rank(comm, &rank_);
        MPI_Comm_size(comm, &ranks_);
    }
    void operator()(Message<Word> &out, Message<Word> &in) const
    {
        MPI_Request requests[2];
        MPI_Irecv(in.data(), in.count(), Datatype<Word>::of(), (rank_ + ranks_ - 1) % ranks_, tag_, comm_, &requests[0]);
        MPI_Isend(out.data(), out.count(), Datatype<Word>::of(), (rank_ + 1) % ranks_, tag_, comm_, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }

  private:
    MPI_Comm comm_;
    int tag_, rank_, ranks_;
};

// --- work

class Work {
  public:
    // How many rounds a nanosecond is, the same on all ranks; the best of several trials, as others may run meanwhile.
    explicit Work(MPI_Comm comm)
    {
        constexpr int rounds = 400000, trials = 9;
        double best = 1e30;
        for (int trial = 0; trial < trials; trial++) {
            MPI_Barrier(comm);
            double begin = now_ns();
            other(rounds);
            best = std::min(best, now_ns() - begin);
        }
        MPI_Allreduce(MPI_IN_PLACE, &best, 1, MPI_DOUBLE, MPI_MIN, comm);
        rounds_per_ns_ = rounds / best;
    }
    int rounds_of(double ns) const
    {
        return static_cast<int>(ns * rounds_per_ns_) + 1;
    }
    // Begins with a word from 0 to 1, and ends with one.
    static double on(double word, int rounds)
    {
        double x = 0.25 + 0.5 * word;
        for (int i = 0; i < rounds; i++)
            x = 3.7 * x * (1.0 - x);
        return x;
    }
    // On no word.
    static void other(int rounds)
    {
        static volatile double result;
        result = on(0.1, rounds);
        static_cast<void>(result);
    }

  private:
    double rounds_per_ns_ = 1;
};

template <class Visit> void in_order(const std::vector<int> &order, Visit visit)
{
    for (int i : order)
        visit(i);
}

std::vector<int> make_order(const std::string &kind, int count)
{
    std::vector<int> order(static_cast<std::size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    if (kind == "reverse")
        std::reverse(order.begin(), order.end());
    std::uint32_t state = 12345;
    for (std::size_t i = order.size() - 1; kind == "random" && i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        std::swap(order[i], order[(state >> 8) % (i + 1)]);
    }
    return order;
}

enum Part { T_P, T_C, T_AP, T_AC, PARTS };

class Program {
  public:
    Program(const Options &options, const Work &work, int rank)
        : options_(options), rank_(rank), work_(work), exchange_(MPI_COMM_WORLD, 300), out_(options.words), in_(options.words),
          produced_(make_order(options.produced, options.words)), consumed_(make_order(options.consumed, options.words))
    {
    }
    // From 0 to 1; other words, ranks and iterations have others.
    double seed(int word, int iteration) const
    {
        std::int64_t number = (word + 1) * INT64_C(16807) + (rank_ + 1) * INT64_C(7919) + (iteration + 3) * INT64_C(104729);
        return static_cast<double>(number % 1000003) / 1000003;
    }
    void iterate(int iteration)
    {
        double begin = now_ns();
        produce(iteration);
        double produced = now_ns();
        Work::other(work_.rounds_of(options_.before_us * 1e3));
        double ready = now_ns();
        exchange_(out_, in_);
        double complete = now_ns();
        Work::other(work_.rounds_of(options_.after_us * 1e3));
        double needed = now_ns();
        consume();
        double end = now_ns();
        if (iteration < 0)
            return;
        measured_[T_P].push_back((produced - begin) / options_.words);
        measured_[T_AP].push_back(ready - produced);
        measured_[T_AC].push_back(needed - complete);
        measured_[T_C].push_back((end - needed) / options_.words);
    }
    void print(int ranks);

  private:
    __attribute__((noinline)) void produce(int iteration)
    {
        int rounds = work_.rounds_of(options_.produce_ns);
        in_order(produced_, [&](int i) {
            out_.put(i, Work::on(seed(i, iteration), rounds)); // reach: last write
        });
    }
    __attribute__((noinline)) void consume()
    {
        int rounds = work_.rounds_of(options_.consume_ns);
        in_order(consumed_, [&](int i) {
            sum_ += Work::on(in_.take(i), rounds); // reach: first touch
        });
    }

    Options options_;
    int rank_;
    Work work_;
    Exchange<double> exchange_;
    Message<double> out_, in_;
    std::vector<int> produced_, consumed_;
    std::vector<double> measured_[PARTS];
    double sum_ = 0;
};

double quantile(const std::vector<double> &sorted, double fraction)
{
    double place = fraction * static_cast<double>(sorted.size() - 1);
    auto below = static_cast<std::size_t>(place);
    double above = below + 1 < sorted.size() ? sorted[below + 1] : sorted[below];
    return sorted[below] + (place - static_cast<double>(below)) * (above - sorted[below]);
}

// Median, first and third quartile of each part, and the sum of what was consumed.
void Program::print(int ranks)
{
    std::vector<double> row;
    for (auto &part : measured_) {
        std::sort(part.begin(), part.end());
        for (double fraction : {0.5, 0.25, 0.75})
            row.push_back(quantile(part, fraction));
    }
    row.push_back(sum_);
    std::vector<double> all(row.size() * static_cast<std::size_t>(ranks));
    int count = static_cast<int>(row.size());
    MPI_Gather(row.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    if (rank_ > 0)
        return;
    std::printf("table reach kernel=concurrent produced=%s consumed=%s exchange=nonblocking consumption=words "
                "buffers=direct writes=1\n",
                options_.produced.c_str(), options_.consumed.c_str());
    std::printf("  rank words iterations");
    for (const char *part : {"t_p_ns", "t_c_ns", "t_ap_ns", "t_ac_ns"})
        std::printf(" %s %s_lo %s_hi", part, part, part);
    std::printf(" sum\n");
    for (int from = 0; from < ranks; from++) {
        std::printf("  %d %d %d", from, options_.words, options_.iterations);
        for (int i = 0; i < count; i++)
            std::printf(" %.2f", all[static_cast<std::size_t>(from * count + i)]);
        std::printf("\n");
    }
}

[[noreturn]] void refuse(const char *why)
{
    std::fprintf(stderr, "reach: %s\n%s", why, help);
    MPI_Abort(MPI_COMM_WORLD, 2);
    std::abort();
}

int number(int least)
{
    char *end;
    long value = std::strtol(optarg, &end, 10);
    if (end == optarg || *end || value < least || value > 1 << 24)
        refuse("a number is expected");
    return static_cast<int>(value);
}

std::string order()
{
    std::string name = optarg;
    if (name != "same" && name != "reverse" && name != "random")
        refuse("an order is same, reverse or random");
    return name;
}

Options read_options(int argc, char **argv)
{
    Options o;
    for (int option; (option = getopt(argc, argv, "n:i:P:C:p:c:o:t:")) != -1;)
        switch (option) {
        case 'n': o.words = number(1); break;
        case 'i': o.iterations = number(1); break;
        case 'P': o.produce_ns = number(0); break;
        case 'C': o.consume_ns = number(0); break;
        case 'p': o.before_us = number(0); break;
        case 'c': o.after_us = number(0); break;
        case 'o': o.produced = order(); break;
        case 't': o.consumed = order(); break;
        default: refuse("no such option");
        }
    return o;
}

} // namespace

int main(int argc, char **argv)
{
    constexpr int warm_ups = 3;
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 2)
        refuse("it needs two ranks or more");
    Options options = read_options(argc, argv);
    Program program(options, Work(MPI_COMM_WORLD), rank);
    for (int iteration = -warm_ups; iteration < options.iterations; iteration++)
        program.iterate(iteration);
    program.print(ranks);
    MPI_Finalize();
    return 0;
}
