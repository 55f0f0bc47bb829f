//! Slab of a worker's connections. A key contains a generation, so that the key of a removed connection never finds a later
//! connection in the same place.

/// Key of a value: its place, and the generation of that place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    slot: u32,
    /// Number of values that the place had before, modulo 2³¹.
    generation: u32,
}

/// Places for values.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl Key {
    /// As a number of 63 bits, with a last one for the caller.
    pub(super) const fn with_bit(self, bit: usize) -> u64 {
        (self.slot as u64) << 32 | ((self.generation & 0x7fff_ffff) as u64) << 1 | (bit as u64 & 1)
    }

    /// Returns the key and the last bit of a number from [`Key::with_bit`].
    pub(super) const fn from_number(number: u64) -> (Self, usize) {
        let key = Self { slot: (number >> 32) as u32, generation: (number as u32) >> 1 };
        (key, (number & 1) as usize)
    }
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> Key {
        if let Some(place) = self.free.pop() {
            let (turn, slot) = &mut self.slots[place as usize];
            *slot = Some(value);
            return Key { slot: place, generation: *turn };
        }
        self.slots.push((0, Some(value)));
        Key { slot: (self.slots.len() - 1) as u32, generation: 0 }
    }

    /// Returns the value that was given this key, if it has not been removed.
    pub(super) fn get(&mut self, key: Key) -> Option<&mut T> {
        self.slots.get_mut(key.slot as usize).filter(|(turn, _)| *turn == key.generation)?.1.as_mut()
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let (turn, slot) =
            self.slots.get_mut(key.slot as usize).filter(|(turn, _)| *turn == key.generation)?;
        let value = slot.take()?;
        *turn = (*turn + 1) & 0x7fff_ffff;
        self.free.push(key.slot);
        Some(value)
    }

    /// Keys of all for which `holds` is true.
    pub(super) fn keys(&self, holds: impl Fn(&T) -> bool) -> Vec<Key> {
        let key = |(place, (turn, value)): (usize, &(u32, Option<T>))| {
            let of = Key { slot: place as u32, generation: *turn };
            value.as_ref().filter(|value| holds(value)).map(|_| of)
        };
        self.slots.iter().enumerate().filter_map(key).collect()
    }

    /// Returns the number of values.
    pub(super) const fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Takes all of them out.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = T> {
        self.free.clear();
        std::mem::take(&mut self.slots).into_iter().filter_map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_does_not_find_a_later_value_in_its_slot() {
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
    fn keys_round_trip_through_numbers() {
        for key in [
            Key { slot: 0, generation: 0 },
            Key { slot: u32::MAX, generation: 0x7fff_ffff },
            Key { slot: 7, generation: 9 },
        ] {
            for bit in [0, 1] {
                assert_eq!(Key::from_number(key.with_bit(bit)), (key, bit));
            }
        }
    }

    #[test]
    fn drain_removes_all_values() {
        let mut slots = Slots::new();
        let keys = [1, 2, 3].map(|n| slots.insert(n));
        slots.remove(keys[1]);
        assert_eq!(slots.drain().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(slots.len(), 0);
    }
}
