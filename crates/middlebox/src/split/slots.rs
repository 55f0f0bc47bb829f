//! Slab of a worker's connections. A key contains a generation, so that the key of a removed connection never finds a later
//! connection in the same place.

/// Key of a value: its place, and the generation of that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    place: u32,
    /// Number of values that the place had before, modulo 2³¹.
    turn: u32,
}

/// Places for values.
#[derive(Debug)]
pub(super) struct Slots<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl Key {
    /// As a number of 63 bits, with a last one for the caller.
    pub(super) const fn with_bit(self, bit: usize) -> u64 {
        (self.place as u64) << 32 | ((self.turn & 0x7fff_ffff) as u64) << 1 | (bit as u64 & 1)
    }

    /// Returns the key and the last bit of a number from [`Key::with_bit`].
    pub(super) const fn of(number: u64) -> (Self, usize) {
        let key = Self { place: (number >> 32) as u32, turn: (number as u32) >> 1 };
        (key, (number & 1) as usize)
    }
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> Key {
        if let Some(place) = self.free.pop() {
            let (turn, slot) = &mut self.places[place as usize];
            *slot = Some(value);
            return Key { place, turn: *turn };
        }
        self.places.push((0, Some(value)));
        Key { place: (self.places.len() - 1) as u32, turn: 0 }
    }

    /// Returns the value that was given this key, if it has not been removed.
    pub(super) fn get(&mut self, key: Key) -> Option<&mut T> {
        self.places.get_mut(key.place as usize).filter(|(turn, _)| *turn == key.turn)?.1.as_mut()
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let (turn, slot) = self.places.get_mut(key.place as usize).filter(|(turn, _)| *turn == key.turn)?;
        let value = slot.take()?;
        *turn = (*turn + 1) & 0x7fff_ffff;
        self.free.push(key.place);
        Some(value)
    }

    /// Keys of all for which `holds` is true.
    pub(super) fn keys(&self, holds: impl Fn(&T) -> bool) -> Vec<Key> {
        let key = |(place, (turn, value)): (usize, &(u32, Option<T>))| {
            let of = Key { place: place as u32, turn: *turn };
            value.as_ref().filter(|value| holds(value)).map(|_| of)
        };
        self.places.iter().enumerate().filter_map(key).collect()
    }

    /// Returns the number of values.
    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Takes all of them out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        std::mem::take(&mut self.places).into_iter().filter_map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_after_somebody_is_not_taken_for_them() {
        let mut slots = Slots::new();
        let first = slots.insert('a');
        assert_eq!(slots.remove(first), Some('a'));
        let second = slots.insert('b');
        assert_eq!(slots.get(first), None);
        assert_eq!((slots.remove(first), slots.len()), (None, 1));
        assert_eq!(slots.get(second), Some(&mut 'b'));
        assert_eq!((slots.keys(|_| true), slots.keys(|value| *value == 'a')), (vec![second], vec![]));
    }

    #[test]
    fn a_key_is_what_its_number_says() {
        for key in
            [Key { place: 0, turn: 0 }, Key { place: u32::MAX, turn: 0x7fff_ffff }, Key { place: 7, turn: 9 }]
        {
            for bit in [0, 1] {
                assert_eq!(Key::of(key.with_bit(bit)), (key, bit));
            }
        }
    }

    #[test]
    fn all_are_taken_out() {
        let mut slots = Slots::new();
        let keys = [1, 2, 3].map(|n| slots.insert(n));
        slots.remove(keys[1]);
        assert_eq!(slots.drain().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(slots.len(), 0);
    }
}
