//! What all views have in common: a header that is dereferenced to, and a payload.

/// Gives a view struct with the fields `header: Ref<B, Header>` and `payload: B` its access methods.
macro_rules! view {
    ($view:ident, $header:ty) => {
        impl<B: zerocopy::ByteSlice> core::ops::Deref for $view<B> {
            type Target = $header;
            #[inline]
            fn deref(&self) -> &$header {
                &self.header
            }
        }
        impl<B: zerocopy::ByteSliceMut> core::ops::DerefMut for $view<B> {
            #[inline]
            fn deref_mut(&mut self) -> &mut $header {
                &mut self.header
            }
        }
        impl<B: zerocopy::ByteSlice> $view<B> {
            /// The bytes after the header, cut to the length that the header states, if it states one.
            #[inline]
            pub fn payload(&self) -> &[u8] {
                &self.payload
            }
            /// The payload with the lifetime of the bytes that the view was made over.
            #[inline]
            pub fn into_payload(self) -> B {
                self.payload
            }
        }
        impl<B: zerocopy::ByteSliceMut> $view<B> {
            /// The payload, to be written.
            #[inline]
            pub fn payload_mut(&mut self) -> &mut [u8] {
                &mut self.payload
            }
        }
    };
}
pub(crate) use view;

/// Splits `bytes` at `at`, or says `error`.
#[inline]
pub(crate) fn split<B: zerocopy::SplitByteSlice>(
    bytes: B,
    at: usize,
    error: crate::Malformed,
) -> Result<(B, B), crate::Malformed> {
    bytes.split_at(at).map_err(|_| error)
}
