// SPDX-License-Identifier: Apache-2.0
// The bundler takes style sheets from where they are imported.
declare module "*.css";
