//! Which frames are corrupted: wired and wireless error models.
