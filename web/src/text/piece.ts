// SPDX-License-Identifier: Apache-2.0
// A text that knows where in its source each of its characters stood: what a reward took from an answer can then be
// marked in the rendered answer too.

export class Piece {
  private constructor(
    readonly text: string,
    private readonly at: Int32Array,
  ) {}

  static of(text: string): Piece {
    const at = new Int32Array(text.length);
    for (let place = 0; place < at.length; place++) at[place] = place;
    return new Piece(text, at);
  }

  static join(pieces: Piece[], between = "\n"): Piece {
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0) + between.length * Math.max(0, pieces.length - 1);
    const at = new Int32Array(length);
    let place = 0;
    pieces.forEach((piece, nth) => {
      at.set(piece.at, place);
      place += piece.length;
      if (nth < pieces.length - 1) for (let n = 0; n < between.length; n++) at[place++] = piece.end;
    });
    return new Piece(pieces.map((piece) => piece.text).join(between), at);
  }

  get length(): number {
    return this.text.length;
  }

  /** Where its first character stood. */
  get start(): number {
    return this.at[0] ?? 0;
  }

  /** Where the character after its last one stood. */
  get end(): number {
    return this.length === 0 ? 0 : (this.at[this.length - 1] ?? 0) + 1;
  }

  from(place: number): number {
    return this.at[place] ?? this.end;
  }

  slice(start: number, end = this.length): Piece {
    return new Piece(this.text.slice(start, end), this.at.subarray(start, end));
  }

  trim(): Piece {
    const start = this.text.length - this.text.trimStart().length;
    return this.slice(start, Math.max(start, this.text.trimEnd().length));
  }

  /** The piece without what the (global) expression finds. */
  without(expression: RegExp): Piece {
    const kept: Piece[] = [];
    let last = 0;
    for (const found of this.text.matchAll(expression)) {
      kept.push(this.slice(last, found.index));
      last = found.index + found[0].length;
    }
    return last === 0 ? this : Piece.join([...kept, this.slice(last)], "");
  }

  lines(): Piece[] {
    const lines: Piece[] = [];
    let start = 0;
    for (let end = this.text.indexOf("\n"); end >= 0; end = this.text.indexOf("\n", start)) {
      lines.push(this.slice(start, end));
      start = end + 1;
    }
    lines.push(this.slice(start));
    return lines;
  }
}
