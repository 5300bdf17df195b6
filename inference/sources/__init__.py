"""Sources of annotations: arrays in memory, files on the disk, several devices. Engines take whole tasks from any."""
