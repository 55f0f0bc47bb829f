//! Macro for configurations: private fields, with a getter and a setter for each.

/// Defines a configuration. A field is written as `name, with_name: Type,` below its documentation, which its getter
/// `name` and its setter `with_name` share. After `Duration`, `as into` makes the setter accept durations of std, too.
///
/// Setters do not check ranges, since some depend on other fields: `validate` does, and so does an endpoint that is made.
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        pub struct $config:ident {
            $($(#[doc = $doc:literal])+ $field:ident, $with:ident: $kind:ty $(as $into:ident)?,)*
        }
    ) => {
        $(#[$attribute])*
        pub struct $config {
            $($(#[doc = $doc])+ pub(crate) $field: $kind,)*
        }

        impl $config {
            $(
                $(#[doc = $doc])+
                #[must_use]
                pub const fn $field(&self) -> $kind {
                    self.$field
                }

                crate::settings::setter! { [$($doc)+] $field, $with: $kind $(as $into)? }
            )*
        }
    };
}

/// Defines the setter of a field.
macro_rules! setter {
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
}

pub(crate) use {setter, settings};
