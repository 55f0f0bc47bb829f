//! Middleboxes from outside: one program, as linking one for each file takes longer than most tests.

mod end_to_end;
mod middlebox;
mod pair;
