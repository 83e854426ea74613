"""What all commands share: failures in one line, options in messages, output."""
