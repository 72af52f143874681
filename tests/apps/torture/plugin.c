/* What loader.c loads and unloads: it computes while it is loaded, when it is called, and while it is unloaded. */
static double compute(int steps)
{
    double x = 0.3;
    for (int i = 0; i < steps; i++)
        x = 3.7 * x * (1.0 - x);
    return x;
}

static volatile double kept;
static _Thread_local int calls;

__attribute__((constructor)) static void begin(void)
{
    kept = compute(50000);
}

__attribute__((destructor)) static void end(void)
{
    kept = compute(50000);
}

int plugin_answer(int question)
{
    kept += compute(50000);
    return question + ++calls;
}
