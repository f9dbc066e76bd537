"""Speed, memory and scaling; ``make bench`` prints the tables of docs/performance.md."""
