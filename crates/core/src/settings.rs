//! Macro for configurations: private fields, with a getter and a setter for each. For the crates of this workspace only.

/// Defines a configuration. A field is written as `name, with_name: Type,` below its documentation, which its getter
/// `name` and its setter `with_name` share. A suffix of the type changes the two functions:
///
/// - none: for types that are `Copy`. Both are `const`.
/// - `as into`: the setter takes any value that converts into the type. Durations of std are accepted, too.
/// - `as owned`: for types that are not `Copy`. The getter is written by hand beside the configuration.
///
/// Setters do not check ranges, since some depend on other fields: `validate` does, and so does the state machine that is
/// made.
#[doc(hidden)]
#[macro_export]
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        pub struct $config:ident {
            $($(#[doc = $doc:literal])+ $field:ident, $with:ident: $kind:ty $(as $suffix:ident)?,)*
        }
    ) => {
        $(#[$attribute])*
        pub struct $config {
            $($(#[doc = $doc])+ pub(crate) $field: $kind,)*
        }

        impl $config {
            $(
                $crate::settings_getter! { [$($doc)+] $field: $kind $(as $suffix)? }

                $crate::settings_setter! { [$($doc)+] $field, $with: $kind $(as $suffix)? }
            )*
        }
    };
}

/// Defines the getter of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! settings_getter {
    ([$($doc:literal)+] $field:ident: $kind:ty as owned) => {};
    ([$($doc:literal)+] $field:ident: $kind:ty $(as into)?) => {
        $(#[doc = $doc])+
        #[must_use]
        pub const fn $field(&self) -> $kind {
            self.$field
        }
    };
}

/// Defines the setter of a field.
#[doc(hidden)]
#[macro_export]
macro_rules! settings_setter {
    ([$($doc:literal)+] $field:ident, $with:ident: $kind:ty) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), "):")]
        #[doc = ""]
        $(#[doc = $doc])+
        #[must_use]
        pub const fn $with(mut self, $field: $kind) -> Self {
            self.$field = $field;
            self
        }
    };
    ([$($doc:literal)+] $field:ident, $with:ident: $kind:ty as into) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), "):")]
        #[doc = ""]
        $(#[doc = $doc])+
        #[must_use]
        pub fn $with(mut self, $field: impl Into<$kind>) -> Self {
            self.$field = $field.into();
            self
        }
    };
    ([$($doc:literal)+] $field:ident, $with:ident: $kind:ty as owned) => {
        #[doc = concat!("Sets [`", stringify!($field), "`](Self::", stringify!($field), "):")]
        #[doc = ""]
        $(#[doc = $doc])+
        #[must_use]
        pub fn $with(mut self, $field: $kind) -> Self {
            self.$field = $field;
            self
        }
    };
}
