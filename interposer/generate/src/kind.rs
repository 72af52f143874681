//! Kinds of parameters: their types in C and in Fortran.
//!
//! From Fortran everything comes by reference (MPI-4.1 19.1): handles and integers as `MPI_Fint`, addresses and counts
//! with kinds of their own, text with its length as a further argument behind all others.

/// What a wrapper does with a Fortran argument that a clause speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// It is a pointer in C too: taken as it is.
    Asis,
    /// An integer: what it points to.
    Value,
    /// A handle: what it points to, through the function of this name (`recorder/base/mpi_api.h`).
    Handle(&'static str),
    /// The address of a handle: as it is, and `*name` through the function of this name.
    HandleBehind(&'static str),
}

/// A kind of parameter.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub name: &'static str,
    /// The type in C.
    pub c: &'static str,
    /// The same in the large-count form of the call.
    pub large: &'static str,
    /// The type as C sees the Fortran argument; empty where Fortran has no such argument.
    pub fortran: &'static str,
    pub fortran_large: &'static str,
    pub load: Load,
    /// Fortran passes its length behind the other arguments.
    pub is_text: bool,
    /// A choice buffer: a descriptor in the TS 29113 form of the Fortran call.
    pub is_buffer: bool,
}

const fn plain(name: &'static str, c: &'static str, fortran: &'static str, load: Load) -> Kind {
    Kind {
        name,
        c,
        large: c,
        fortran,
        fortran_large: fortran,
        load,
        is_text: false,
        is_buffer: false,
    }
}

const fn sized(
    name: &'static str,
    types: [&'static str; 2],
    fortran: [&'static str; 2],
    load: Load,
) -> Kind {
    Kind {
        name,
        c: types[0],
        large: types[1],
        fortran: fortran[0],
        fortran_large: fortran[1],
        load,
        is_text: false,
        is_buffer: false,
    }
}

const fn handle(name: &'static str, c: &'static str, f2c: &'static str) -> Kind {
    plain(name, c, "const MPI_Fint *", Load::Handle(f2c))
}

const fn behind(name: &'static str, c: &'static str, f2c: &'static str) -> Kind {
    plain(name, c, "MPI_Fint *", Load::HandleBehind(f2c))
}

const fn text(name: &'static str, c: &'static str, fortran: &'static str) -> Kind {
    Kind { is_text: true, ..plain(name, c, fortran, Load::Asis) }
}

const fn buffer(name: &'static str, c: &'static str) -> Kind {
    Kind { is_buffer: true, ..plain(name, c, c, Load::Asis) }
}

const INTEGER: &str = "const MPI_Fint *";

/// All of them.
pub const KINDS: &[Kind] = &[
    buffer("in", "const void *"),
    buffer("out", "void *"),
    plain("pointer", "void *", "void *", Load::Asis),
    sized("count", ["int", "MPI_Count"], [INTEGER, "const MPI_Count *"], Load::Value),
    sized(
        "counts",
        ["const int *", "const MPI_Count *"],
        [INTEGER, "const MPI_Count *"],
        Load::Asis,
    ),
    sized("displs", ["const int *", "const MPI_Aint *"], [INTEGER, "const MPI_Aint *"], Load::Asis),
    sized("disp_unit", ["int", "MPI_Aint"], [INTEGER, "const MPI_Aint *"], Load::Value),
    plain("bigcount", "MPI_Count", "const MPI_Count *", Load::Value),
    plain("aint", "MPI_Aint", "const MPI_Aint *", Load::Value),
    plain("aints", "const MPI_Aint *", "const MPI_Aint *", Load::Asis),
    plain("offset", "MPI_Offset", "const MPI_Offset *", Load::Value),
    plain("offset*", "MPI_Offset *", "MPI_Offset *", Load::Asis),
    plain("int", "int", INTEGER, Load::Value),
    plain("int*", "int *", "MPI_Fint *", Load::Asis),
    plain("ints", "const int *", INTEGER, Load::Asis),
    plain("flag*", "int *", "MPI_Fint *", Load::Asis),
    sized("size*", ["int *", "MPI_Count *"], ["MPI_Fint *", "MPI_Count *"], Load::Asis),
    handle("type", "MPI_Datatype", "type_f2c"),
    plain("types", "const MPI_Datatype *", INTEGER, Load::Asis),
    handle("op", "MPI_Op", "op_f2c"),
    handle("comm", "MPI_Comm", "comm_f2c"),
    behind("comm*", "MPI_Comm *", "comm_f2c"),
    handle("win", "MPI_Win", "win_f2c"),
    behind("win*", "MPI_Win *", "win_f2c"),
    handle("file", "MPI_File", "file_f2c"),
    behind("file*", "MPI_File *", "file_f2c"),
    handle("request", "MPI_Request", "request_f2c"),
    behind("request*", "MPI_Request *", "request_f2c"),
    plain("requests", "const MPI_Request *", INTEGER, Load::Asis),
    behind("message*", "MPI_Message *", "message_f2c"),
    plain("status*", "MPI_Status *", "MPI_Fint *", Load::Asis),
    plain("statuses", "MPI_Status *", "MPI_Fint *", Load::Asis),
    plain("session", "MPI_Session", INTEGER, Load::Asis),
    plain("session*", "MPI_Session *", "MPI_Fint *", Load::Asis),
    plain("info", "MPI_Info", INTEGER, Load::Asis),
    plain("infos", "const MPI_Info *", INTEGER, Load::Asis),
    plain("group", "MPI_Group", INTEGER, Load::Asis),
    plain("errhandler", "MPI_Errhandler", INTEGER, Load::Asis),
    text("string", "const char *", "const char *"),
    text("string_out", "char *", "char *"),
    text("argv_in", "char **", "const char *"),
    text("strings", "char **", "const char *"),
    text("argvs", "char ***", "const char *"),
    plain("query_fn", "MPI_Grequest_query_function *", "void *", Load::Asis),
    plain("free_fn", "MPI_Grequest_free_function *", "void *", Load::Asis),
    plain("cancel_fn", "MPI_Grequest_cancel_function *", "void *", Load::Asis),
    plain("argc", "int *", "", Load::Asis),
    plain("argv", "char ***", "", Load::Asis),
];

/// The kind of that name.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}
