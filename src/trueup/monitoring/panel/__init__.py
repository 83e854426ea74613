"""The members of the consensus, fitted together and asked together."""
