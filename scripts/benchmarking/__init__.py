"""What `scripts/benchmark` does, in the order in which to read it.

- `cells`: what is timed, and the numbers that all share;
- the contestants, each of which makes a `Runner` of a cell: `plain` (a loop with torch.nn and
  torch.optim), `engines` (this package, in stacks) and `with_jax`;
- `steps`: the first part, steps of every contestant, with a second worker from `partner`;
- `jobs`: the second part, whole jobs; `profile`: where the time of a step goes;
- `start`: commands that train nothing, and what they import;
- `report`, `targets` and `figure`: what came out, on the screen and in docs/performance.md.
"""
