"""Files as people have them: tables with columns of other names, and what annotation tools export."""
