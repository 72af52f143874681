/*
 * An algebraic multigrid solve by hypre: Laplace's equation on slabs, BoomerAMG cycle after cycle.
 *
 *   amg WIDTH THICKNESS CYCLES
 *
 * Each rank has WIDTH x WIDTH x THICKNESS points of a seven-point stencil; slabs are stacked. The library posts the exchange of a
 * product, computes what needs nothing of others, and then waits. Rank 0 prints microseconds a cycle, and the
 * residual, which is the same however messages move.
 */
#include <HYPRE.h>
#include <HYPRE_IJ_mv.h>
#include <HYPRE_parcsr_ls.h>

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

struct slabs {
    HYPRE_BigInt width, thickness, ranks;
};

/* Columns and values of a row; returns how many. */
static HYPRE_Int row_of(const struct slabs *slabs, HYPRE_BigInt row, HYPRE_BigInt *columns, double *values)
{
    HYPRE_BigInt width = slabs->width, plane = width * width, height = slabs->thickness * slabs->ranks;
    HYPRE_BigInt x = row % width, y = row / width % width, z = row / plane;
    const struct { HYPRE_BigInt to; int is_inside; } neighbors[] = {
        {row - 1, x > 0}, {row + 1, x < width - 1}, {row - width, y > 0},
        {row + width, y < width - 1}, {row - plane, z > 0}, {row + plane, z < height - 1},
    };
    HYPRE_Int count = 1;
    columns[0] = row;
    values[0] = 6;
    for (int i = 0; i < 6; i++) {
        if (!neighbors[i].is_inside)
            continue;
        columns[count] = neighbors[i].to;
        values[count++] = -1;
    }
    return count;
}

static HYPRE_ParCSRMatrix make_matrix(const struct slabs *slabs, HYPRE_BigInt first, HYPRE_BigInt last)
{
    HYPRE_IJMatrix matrix;
    void *object;
    HYPRE_IJMatrixCreate(MPI_COMM_WORLD, first, last, first, last, &matrix);
    HYPRE_IJMatrixSetObjectType(matrix, HYPRE_PARCSR);
    HYPRE_IJMatrixInitialize(matrix);
    for (HYPRE_BigInt row = first; row <= last; row++) {
        HYPRE_BigInt columns[7];
        double values[7];
        HYPRE_Int count = row_of(slabs, row, columns, values);
        HYPRE_IJMatrixSetValues(matrix, 1, &count, &row, columns, values);
    }
    HYPRE_IJMatrixAssemble(matrix);
    HYPRE_IJMatrixGetObject(matrix, &object);
    return object;
}

static HYPRE_ParVector make_vector(HYPRE_BigInt first, HYPRE_BigInt last, double value)
{
    HYPRE_IJVector vector;
    void *object;
    HYPRE_IJVectorCreate(MPI_COMM_WORLD, first, last, &vector);
    HYPRE_IJVectorSetObjectType(vector, HYPRE_PARCSR);
    HYPRE_IJVectorInitialize(vector);
    for (HYPRE_BigInt row = first; row <= last; row++)
        HYPRE_IJVectorSetValues(vector, 1, &row, &value);
    HYPRE_IJVectorAssemble(vector);
    HYPRE_IJVectorGetObject(vector, &object);
    return object;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc != 4) {
        fprintf(stderr, "usage: amg WIDTH THICKNESS CYCLES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    struct slabs slabs = {atoi(argv[1]), atoi(argv[2]), ranks};
    int cycles = atoi(argv[3]);
    HYPRE_BigInt rows = slabs.width * slabs.width * slabs.thickness, first = rank * rows, last = first + rows - 1;
    HYPRE_ParCSRMatrix matrix = make_matrix(&slabs, first, last);
    HYPRE_ParVector right = make_vector(first, last, 1), solution = make_vector(first, last, 0);

    HYPRE_Solver solver;
    HYPRE_BoomerAMGCreate(&solver);
    HYPRE_BoomerAMGSetRelaxType(solver, 18); /* l1-Jacobi: its products overlap, which hybrid Gauss-Seidel's do not */
    HYPRE_BoomerAMGSetMaxIter(solver, cycles);
    HYPRE_BoomerAMGSetTol(solver, 1e-300); /* never reached; without one it knows no residual */
    HYPRE_BoomerAMGSetup(solver, matrix, right, solution);
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), residual;
    HYPRE_BoomerAMGSolve(solver, matrix, right, solution);
    double took = MPI_Wtime() - begin;
    HYPRE_BoomerAMGGetFinalRelativeResidualNorm(solver, &residual);
    if (rank == 0)
        printf("cycle %.0f residual %.6e\n", took * 1e6 / cycles, residual);
    HYPRE_BoomerAMGDestroy(solver);
    MPI_Finalize();
    return 0;
}
