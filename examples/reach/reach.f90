! The concurrent kernel of reach.c in Fortran. Options in the order in which they are given: WORDS ITERATIONS PRODUCE_NS CONSUME_NS
! BEFORE_US AFTER_US PRODUCED CONSUMED, the last two being same, reverse or random.
program reach
    use mpi_f08
    use, intrinsic :: iso_fortran_env, only: int64, real64
    implicit none

    integer, parameter :: warm_ups = 3, tag = 300, parts = 4, t_p = 1, t_c = 2, t_ap = 3, t_ac = 4
    integer :: words = 2048, iterations = 200, produce_ns = 500, consume_ns = 300, before_us = 400, after_us = 250
    character(len=16) :: produced_in = 'same', consumed_in = 'same'
    integer :: rank, ranks, iteration
    integer, allocatable :: produced(:), consumed(:)
    real(real64), allocatable, asynchronous :: out(:), in(:)
    real(real64), allocatable :: measured(:, :)
    real(real64) :: rounds_per_ns, total = 0

    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks)
    call read_options()
    if (ranks < 2) call refuse('it needs two ranks or more')
    allocate (out(words), in(words), measured(iterations, parts))
    out = 0
    in = 0
    call make_order(produced_in, produced)
    call make_order(consumed_in, consumed)
    call calibrate()
    do iteration = 1 - warm_ups, iterations
        call iterate(iteration)
    end do
    call print_table()
    call MPI_Finalize()

contains

    ! Work that begins with a word from 0 to 1, and ends with one.
    pure function work_on(word, rounds) result(x)
        real(real64), intent(in) :: word
        integer, intent(in) :: rounds
        real(real64) :: x
        integer :: i
        x = 0.25_real64 + 0.5_real64 * word
        do i = 1, rounds
            x = 3.7_real64 * x * (1.0_real64 - x)
        end do
    end function

    subroutine other_work(rounds)
        integer, intent(in) :: rounds
        real(real64), volatile :: done
        done = work_on(0.1_real64, rounds)
    end subroutine

    integer function rounds_of(ns)
        real(real64), intent(in) :: ns
        rounds_of = int(ns * rounds_per_ns) + 1
    end function

    ! How many rounds a nanosecond is, the same on all ranks; the best of several trials, as others may run meanwhile.
    subroutine calibrate()
        integer, parameter :: rounds = 400000, trials = 9
        integer :: trial
        real(real64) :: begin, best, all
        best = huge(best)
        do trial = 1, trials
            call MPI_Barrier(MPI_COMM_WORLD)
            begin = MPI_Wtime()
            call other_work(rounds)
            best = min(best, MPI_Wtime() - begin)
        end do
        call MPI_Allreduce(best, all, 1, MPI_DOUBLE_PRECISION, MPI_MIN, MPI_COMM_WORLD)
        rounds_per_ns = rounds / (all * 1e9_real64)
    end subroutine

    ! From 0 to 1; other words, ranks and iterations have others.
    pure function seed(word, number)
        integer, intent(in) :: word, number
        real(real64) :: seed
        integer(int64) :: all
        all = word * 16807_int64 + (rank + 1) * 7919_int64 + (number + warm_ups) * 104729_int64
        seed = modulo(all, 1000003_int64) / 1000003.0_real64
    end function

    subroutine produce(number)
        integer, intent(in) :: number
        integer :: k, i, rounds
        rounds = rounds_of(real(produce_ns, real64))
        do k = 1, words
            i = produced(k)
            out(i) = work_on(seed(i, number), rounds) ! reach: last write
        end do
    end subroutine

    subroutine consume()
        integer :: k, i, rounds
        rounds = rounds_of(real(consume_ns, real64))
        do k = 1, words
            i = consumed(k)
            total = total + work_on(in(i), rounds) ! reach: first touch
        end do
    end subroutine

    subroutine exchange()
        type(MPI_Request) :: requests(2)
        integer :: to, from
        to = modulo(rank + 1, ranks)
        from = modulo(rank - 1, ranks)
        call MPI_Irecv(in, words, MPI_DOUBLE_PRECISION, from, tag, MPI_COMM_WORLD, requests(1))
        call MPI_Isend(out, words, MPI_DOUBLE_PRECISION, to, tag, MPI_COMM_WORLD, requests(2))
        call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE)
    end subroutine

    subroutine iterate(number)
        integer, intent(in) :: number
        real(real64) :: at(6)
        at(1) = MPI_Wtime()
        call produce(number)
        at(2) = MPI_Wtime()
        call other_work(rounds_of(before_us * 1e3_real64))
        at(3) = MPI_Wtime()
        call exchange()
        at(4) = MPI_Wtime()
        call other_work(rounds_of(after_us * 1e3_real64))
        at(5) = MPI_Wtime()
        call consume()
        at(6) = MPI_Wtime()
        if (number < 1) return
        measured(number, t_p) = (at(2) - at(1)) * 1e9_real64 / words
        measured(number, t_ap) = (at(3) - at(2)) * 1e9_real64
        measured(number, t_ac) = (at(5) - at(4)) * 1e9_real64
        measured(number, t_c) = (at(6) - at(5)) * 1e9_real64 / words
    end subroutine

    subroutine make_order(kind, order)
        character(len=*), intent(in) :: kind
        integer, allocatable, intent(out) :: order(:)
        integer(int64) :: state
        integer :: i, other, swap
        order = [(i, i = 1, words)]
        if (kind == 'reverse') order = order(words:1:-1)
        state = 12345
        if (kind == 'random') then
            do i = words, 2, -1
                state = modulo(state * 1664525_int64 + 1013904223_int64, 4294967296_int64)
                other = int(modulo(state / 256, int(i, int64))) + 1
                swap = order(i)
                order(i) = order(other)
                order(other) = swap
            end do
        end if
    end subroutine

    subroutine sort(values)
        real(real64), intent(inout) :: values(:)
        real(real64) :: value
        integer :: i, j
        do i = 2, size(values)
            value = values(i)
            j = i - 1
            do while (j >= 1)
                if (values(j) <= value) exit
                values(j + 1) = values(j)
                j = j - 1
            end do
            values(j + 1) = value
        end do
    end subroutine

    real(real64) function quantile(sorted, fraction)
        real(real64), intent(in) :: sorted(:), fraction
        real(real64) :: place
        integer :: below
        place = 1 + fraction * (size(sorted) - 1)
        below = min(int(place), max(size(sorted) - 1, 1))
        quantile = sorted(below) + (place - below) * (sorted(min(below + 1, size(sorted))) - sorted(below))
    end function

    ! Median, first and third quartile of each part, and the sum of what was consumed.
    subroutine print_table()
        integer, parameter :: columns = 3 * parts + 1
        real(real64) :: row(columns), all(columns, 0:ranks - 1)
        integer :: part, from
        do part = 1, parts
            call sort(measured(:, part))
            row(3 * part - 2) = quantile(measured(:, part), 0.5_real64)
            row(3 * part - 1) = quantile(measured(:, part), 0.25_real64)
            row(3 * part) = quantile(measured(:, part), 0.75_real64)
        end do
        row(columns) = total
        call MPI_Gather(row, columns, MPI_DOUBLE_PRECISION, all, columns, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
        if (rank > 0) return
        print '(5a)', 'table reach kernel=concurrent produced=', trim(produced_in), ' consumed=', trim(consumed_in), &
            ' exchange=nonblocking consumption=words buffers=direct writes=1'
        print '(2x, a, *(1x, a))', 'rank words iterations', &
            't_p_ns t_p_ns_lo t_p_ns_hi t_c_ns t_c_ns_lo t_c_ns_hi', &
            't_ap_ns t_ap_ns_lo t_ap_ns_hi t_ac_ns t_ac_ns_lo t_ac_ns_hi sum'
        do from = 0, ranks - 1
            print '(2x, i0, 2(1x, i0), *(1x, f0.2))', from, words, iterations, all(:, from)
        end do
    end subroutine

    subroutine refuse(why)
        character(len=*), intent(in) :: why
        if (rank == 0) print '(2a)', 'reach: ', why
        call MPI_Abort(MPI_COMM_WORLD, 2)
    end subroutine

    subroutine read_number(place, number)
        integer, intent(in) :: place
        integer, intent(inout) :: number
        character(len=32) :: text
        integer :: status
        if (command_argument_count() < place) return
        call get_command_argument(place, text)
        read (text, *, iostat=status) number
        if (status /= 0 .or. number < 0) call refuse('the first six options are numbers')
    end subroutine

    subroutine read_name(place, name)
        integer, intent(in) :: place
        character(len=*), intent(inout) :: name
        if (command_argument_count() < place) return
        call get_command_argument(place, name)
        if (all(name /= [character(len=16) :: 'same', 'reverse', 'random'])) call refuse('an order is same, reverse or random')
    end subroutine

    subroutine read_options()
        call read_number(1, words)
        call read_number(2, iterations)
        call read_number(3, produce_ns)
        call read_number(4, consume_ns)
        call read_number(5, before_us)
        call read_number(6, after_us)
        call read_name(7, produced_in)
        call read_name(8, consumed_in)
        if (words < 1 .or. iterations < 1) call refuse('there is a word and an iteration at least')
    end subroutine
end program
